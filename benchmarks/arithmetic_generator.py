"""Speed of the arithmetic generator, alone and as a ratio to DeepMind's.

    python benchmarks/arithmetic_generator.py
    python benchmarks/arithmetic_generator.py --reference-python /path/to/python

`--reference-python` is the Python of an environment with `mathematics-dataset==1.0.1` and sympy.
Both generators draw the same problems, in one process each and in turns, after a warm-up in which
their caches fill; their questions and answers are compared as well. Rates are per CPU second, since
others may use the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from itertools import islice

from smmd_bench.tasks._mixed_expressions import REGIMES, reference_stream

REFERENCE = """
import hashlib, importlib, json, random, sys, time
import numpy, sympy
from absl import flags
# sympy 1.6 moved a function that another module of the package imports.
diophantine = importlib.import_module('sympy.solvers.diophantine')
if not hasattr(diophantine, 'base_solution_linear'):
    inner = importlib.import_module('sympy.solvers.diophantine.diophantine')
    diophantine.base_solution_linear = inner.base_solution_linear
from mathematics_dataset import generate
from mathematics_dataset.modules import arithmetic
flags.FLAGS(['reference'])
level, seed, warm_up, count = sys.argv[1], *map(int, sys.argv[2:])
thirds = ['easy', 'medium', 'hard']
if level in thirds:
    module = arithmetic.train(generate._make_entropy_fn(thirds.index(level), 3))['mixed']
elif level == 'interpolate':
    module = arithmetic.test()['mixed']
else:
    module = arithmetic.test_extra()['mixed_longer']
def draw(n):
    drawn = []
    for _ in range(n):
        problem, _ = generate.sample_from_module(module)
        drawn.append((str(problem.question), str(problem.answer)))
    return drawn
random.seed(seed)
numpy.random.seed(seed)
draw(warm_up)
start = time.process_time()
drawn = draw(count)
seconds = time.process_time() - start
print(json.dumps({'rate': count / seconds, 'python': sys.version.split()[0],
                  'sympy': sympy.__version__, 'numpy': numpy.__version__, 'drawn': drawn}))
"""


def our_rate(level: str, seed: int, warm_up: int, count: int) -> tuple[float, list[list[str]]]:
    stream = reference_stream(level, seed)
    for _ in islice(stream, warm_up):
        pass
    start = time.process_time()
    drawn = list(islice(stream, count))
    seconds = time.process_time() - start
    return count / seconds, [list(pair) for pair in drawn]


def measure_levels(args: argparse.Namespace) -> None:
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs; problems a CPU second, median")
    print(f"of {args.repeats} repeats of {args.count} ({args.reference_count} for the reference)\n")
    heading = f"{'level':<12}{'here':>8}"
    if args.reference_python:
        heading += f"{'reference':>11}{'ratio':>8}  same problems"
    print(heading)
    means: list[float] = []
    versions = ""
    for level in REGIMES:
        ours, theirs, same = [], [], True
        for seed in range(args.repeats):
            rate, drawn = our_rate(level, seed, args.warm_up, args.count)
            ours.append(rate)
            if args.reference_python:
                numbers = (seed, args.warm_up, args.reference_count)
                command = [args.reference_python, "-c", REFERENCE, level, *map(str, numbers)]
                reference = json.loads(subprocess.check_output(command, text=True))
                theirs.append(reference["rate"])
                shared = min(args.count, args.reference_count)
                same &= reference["drawn"][:shared] == drawn[:shared]
                versions = "reference: Python {python}, sympy {sympy}, numpy {numpy}".format_map(
                    reference
                )
        median = statistics.median(ours)
        line = f"{level:<12}{median:>8.0f}"
        if theirs:
            reference_median = statistics.median(theirs)
            line += f"{reference_median:>11.0f}{median / reference_median:>7.1f}x"
            line += f"  {'yes' if same else 'NO'}"
        print(line, flush=True)
        if level in ("easy", "medium", "hard"):
            means.append(1 / median)
    print(
        f"\n2M problems of easy, medium and hard: {2e6 * statistics.mean(means):.0f} s of one core,"
        " without the split and the file"
    )
    if versions:
        print(versions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="problems a repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=1000, help="problems before the clock")
    parser.add_argument("--reference-python", help="a Python with mathematics-dataset 1.0.1")
    parser.add_argument("--reference-count", type=int, default=2000)
    measure_levels(parser.parse_args())
