"""`python -m smmd_bench.cli`."""

from . import main

main()
