"""`smmd-bench regress RUN`: what a run's checkpoints can still do besides numbers."""

from __future__ import annotations

from pathlib import Path

import click

from . import options


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--suite",
    "suites",
    default="mmlu",
    show_default=True,
    metavar="SUITE,...",
    help="mmlu, samsum, or any task or group of lm-eval, such as gsm8k,hellaswag.",
)
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Also this folder: a full checkpoint, or an adapter on the run's model; may be repeated.",
)
@click.option(
    "--losses",
    default="",
    metavar="LOSS,...",
    help="Only the cells of these losses; base is the untuned model (default: all).",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=None,
    help="A quick look: the first N questions of each subject or task.",
)
@click.option(
    "--shots",
    type=click.IntRange(min=0),
    default=None,
    help="Examples before each question (default: 5 for mmlu, else the task's own).",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "hf", "vllm"]),
    default="auto",
    show_default=True,
    help="auto: vllm on a GPU, hf (transformers) on a CPU.",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=None, help="Prompts at a time.")
@options.executor
@options.data_dir
@options.plugin
def command(
    run: Path,
    suites: str,
    checkpoints: tuple[Path, ...],
    losses: str,
    limit: int | None,
    shots: int | None,
    engine: str,
    batch_size: int | None,
    executor: str,
    plugins: tuple[Path, ...],
) -> int:
    """Run lm-eval on the base and every loss's selected checkpoint of the folder RUN.

    What the run has already is not evaluated again. Tables and page are made anew at the end.

    \b
    Examples:
      smmd-bench regress runs/NAME --suite mmlu,samsum
      smmd-bench regress runs/NAME --suite mmlu --limit 10 --data-dir DIR
      smmd-bench regress runs/NAME --suite gsm8k --losses ce,smmd --checkpoint ./other
    """
    from ..registry import load_plugin_file

    for file in plugins:
        load_plugin_file(file)
    from rich.console import Console

    from ..parameters import split_list
    from ..progress import shown
    from ..publishing.run import is_published, publish_run
    from ..regression.run import find_setting, regress
    from ..regression.suite import find_suites, shots_notes
    from ..regression.target import find_targets

    targets, notes = find_targets(run, split_list(losses), checkpoints)
    found = find_suites(split_list(suites), shots)
    setting = find_setting(engine, limit, batch_size, targets)
    for note in [*notes, *shots_notes(found, shots)]:
        click.echo(f"Note: {note}", err=True)
    click.echo(
        f"{len(targets)} checkpoints x {', '.join(suite.name for suite in found)} with "
        f"{setting.engine}" + (f", {limit} questions a subject or task." if limit else ".")
    )
    console = Console(width=None if Console().is_terminal else 100)
    with shown(console) as progress:
        outcome = regress(run, targets, found, setting, progress, executor=executor)
    if not is_published(run):
        with console.status("Making tables, figures and the page ..."):
            publish_run(run)
    if not outcome.worked:
        click.echo("Nothing to do: all of it was evaluated before.")
    _print_tables(run)
    for label, reason in outcome.failed.items():
        click.echo(f"Failed: {label}: {reason}", err=True)
    click.echo(f"Tables: {run / 'reports' / 'tables'}")
    click.echo(f"Page:   {run / 'reports' / 'index.html'}")
    if outcome.failed:
        click.echo(
            f"{len(outcome.failed)} evaluations failed; tracebacks are in "
            f"{run / 'regression'}/*/FAILED.json. The same command tries them again.",
            err=True,
        )
        return 1
    return 0


def _print_tables(run: Path) -> None:
    """The tables of regression checks as they were published."""
    from ..results.run import read_run

    is_mmlu = read_run(run).regression["suite"] == "mmlu"
    for name, there in (("mmlu_table", is_mmlu.any()), ("regression_table", (~is_mmlu).any())):
        file = run / "reports" / "tables" / f"{name}.txt"
        if there and file.exists():
            click.echo(file.read_text(encoding="utf-8"))
