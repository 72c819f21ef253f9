"""Files of a run and of the cache, written atomically, addressed by content, and stamped.

In: paths, bytes, JSON, frames. Out: addresses, digests, and what a cell's files were made from.
It may import `errors` and `contracts`.
"""
