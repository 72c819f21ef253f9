"""`smmd-bench plan FILE`: the folder of a run, for workers that share it."""

from pathlib import Path

import click

from . import options
from .run import read_plan
from .voice import Voice


@click.command()
@click.argument("file", type=options.PATH)
@options.executor
@options.data_dir
@options.out("the experiment")
@click.option("--extend", is_flag=True, help="Add this experiment to another one's folder.")
@options.storage
@options.voice
def command(
    file: Path,
    voice: Voice,
    out: Path | None,
    executor: str,
    storage: str | None,
    *,
    extend: bool,
) -> int:
    """Make the folder of a YAML FILE's run, and list its cells.

    Nothing is trained. `smmd-bench work` does one cell or all, in as many processes as you start;
    `smmd-bench run FILE` does what is left then, compares, and makes the report.

    \b
    Examples:
      smmd-bench plan experiment.yaml --out runs/shared
      smmd-bench plan experiment.yaml --storage s3://bucket/run
      smmd-bench plan experiment.yaml --json | jq -r '.cells[].address'
    """
    from ..plugin_system.registry import load
    from ..run.model_checks import check_models
    from ..run.pipeline import plan_file
    from ..run.run_directory import RunDirectory
    from .execution import folder_of, present_plan, say_plan

    runner, plan = load("executors", executor), read_plan(file)
    run = RunDirectory(folder_of(plan, out))
    plan, _ = present_plan(voice, plan, run, runner)
    check_models([cell for cell in plan.cells if run.missing(cell)])
    plan_file(plan, run.path, extend=extend, storage=storage)
    say_plan(voice, run, plan.cells, runner)
    return 0
