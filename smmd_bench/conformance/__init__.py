"""What a plugin must do to be used here, tried out: the suite behind `smmd-bench validate`.

It says what it checked, and what it could not: a check that needs data from elsewhere never fetches
them, and is reported as such.
"""
