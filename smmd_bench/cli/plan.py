"""`smmd-bench plan`: the folder of a run, for workers that share it; the size of the next one."""

import math
from pathlib import Path

import click

from ..errors import UserError
from . import options
from .run import read_plan
from .voice import Voice


@click.command()
@click.argument("file", type=options.PATH, required=False)
@options.executor
@options.data_dir
@options.out("the experiment")
@click.option("--extend", is_flag=True, help="Add this experiment to another one's folder.")
@options.storage
@click.option(
    "--power", "pilot", type=options.PATH, help="In place of FILE: a finished run, as a pilot."
)
@click.option("--difference", type=float, help="With --power: the difference to be found.")
@click.option("--metric", help="With --power: of this metric (default: exact_match).")
@options.voice
def command(
    file: Path | None,
    voice: Voice,
    pilot: Path | None,
    difference: float | None,
    metric: str | None,
    out: Path | None,
    executor: str,
    storage: str | None,
    *,
    extend: bool,
) -> int:
    """Make the folder of a YAML FILE's run, and list its cells. Or say how many seeds and examples
    a difference needs.

    Nothing is trained. `smmd-bench work` does one cell or all, in as many processes as you start;
    `smmd-bench run FILE` does what is left then, compares, and makes the report.

    \b
    Examples:
      smmd-bench plan experiment.yaml --out runs/shared
      smmd-bench plan experiment.yaml --storage s3://bucket/run
      smmd-bench plan experiment.yaml --json | jq -r '.cells[].address'
      smmd-bench plan --power runs/PILOT --difference 2
    """
    if pilot is not None or file is None:
        options.require_unused("--power", "executor", "data_dir", "out", "extend", "storage")
        _say_power(voice, pilot, file, metric, difference)
        return 0
    if metric is not None or difference is not None:
        raise UserError("--metric and --difference go with --power RUN: give it in place of FILE.")
    from ..plugin_system.registry import load
    from ..run.pipeline import check_file, plan_file
    from ..run.run_directory import RunDirectory
    from .execution import folder_of, present_plan, say_plan

    runner, plan = load("executors", executor), read_plan(file)
    run = RunDirectory(folder_of(plan, out))
    plan, _, run = present_plan(voice, plan, run, runner)
    with voice.progress(stderr=True) as progress:
        check_file(run, plan, progress, extend=extend)
    plan_file(plan, run.path, extend=extend, storage=storage)
    say_plan(voice, run, plan.cells, runner)
    return 0


def _say_power(
    voice: Voice,
    pilot: Path | None,
    file: Path | None,
    metric: str | None,
    difference: float | None,
) -> None:
    """Print what each number of seeds and examples could show."""
    from ..results.frames import read_run
    from ..results.power import planned_power
    from .plan_power import print_power
    from .terminal import print_json
    from .voice import rows_of

    if pilot is None or file is not None:
        raise UserError("Give a YAML FILE, or a finished run as --power RUN: one of them.")
    if difference is not None and not 0 < difference < math.inf:
        raise UserError(f"--difference {difference:g} is no size above 0: give one, such as 2.")
    metric = metric or "exact_match"
    found = planned_power(read_run(pilot), metric, difference)
    if voice.as_json:
        content = {"metric": metric, "rows": rows_of(found), "left_out": found.attrs["left_out"]}
        print_json({"pilot": str(pilot), **content})
    else:
        print_power(pilot, found, metric, difference)
