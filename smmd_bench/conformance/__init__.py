"""What a plugin must do to be used here, tried out: the suite behind `smmd-bench validate`.

In: a plugin. Out: what was checked, what was violated, and what could not be checked here: data
from elsewhere are never fetched. It may import `overhead` and what is below.
"""
