"""What `train-eval` and `run` share: plan, run, report, summary, exit status."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from ..contracts import Split
from ..errors import UserError
from ..experiment import Cell, Experiment


def execute(
    experiment: Experiment, out: Path | None, *, executor: str, extend: bool, dry_run: bool
) -> int:
    """Run an experiment and print its table; returns the exit status."""
    from ..registry import load
    from ..run_directory import RunDirectory

    folder = out or Path("runs") / experiment.name
    console = Console(stderr=False, width=None if Console().is_terminal else 100)
    load("executors", executor)
    cells = experiment.cells
    _check_folder(folder)
    for cell in cells:
        _ = cell.addresses  # missing data, or a split that a task lacks: before anything is said
    _print_recipe(experiment, cells)
    if dry_run:
        _print_plan(RunDirectory(folder), cells)
        return 0
    from ..pipeline import run_experiment
    from ..progress import shown
    from ..publishing.run import is_published, publish_run

    with shown(console) as progress:
        outcome = run_experiment(experiment, folder, progress, executor=executor, extend=extend)
    index = folder / "reports" / "index.html"
    if not is_published(folder):
        with console.status("Making tables, figures and the page ..."):
            publish_run(folder)
    if not outcome.worked:
        click.echo(f"Nothing to do: {folder} is complete.")
    print_tables(folder)
    for label, sentences in outcome.notes.items():
        for sentence in sentences:
            click.echo(f"Note: {label}: {sentence}", err=True)
    for title, reasons in (("Skipped", outcome.skipped), ("Failed", outcome.failed)):
        for label, reason in reasons.items():
            click.echo(f"{title}: {label}: {reason}", err=True)
    click.echo(f"Tables:  {folder / 'reports' / 'tables'}")
    click.echo(f"Figures: {folder / 'reports' / 'figures'}")
    click.echo(f"Page:    {index}")
    if outcome.failed:
        click.echo(
            f"{len(outcome.failed)} of {len(cells)} cells failed; tracebacks are in "
            f"{folder / 'cells'}/*/FAILED.json. The same command tries them again.",
            err=True,
        )
        return 1
    return 0


def print_tables(folder: Path) -> None:
    """The run's tables as they were published, on the terminal."""
    from ..publishing.run import published_tables

    click.echo(published_tables(folder))


def _check_folder(folder: Path) -> None:
    """Raise UserError if the output folder is a file, or would lie below one."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UserError(
            f"The output folder {folder} cannot be made, because {there} is a file: choose another "
            "with --out."
        )


def _print_recipe(experiment: Experiment, cells: list[Cell]) -> None:
    from ..manifest import examples_there, shortage

    said: dict[str, None] = {}

    def there(cell: Cell, split: Split) -> int:
        found = examples_there(cell, split)
        if (sentence := shortage(cell, split, found)) is not None:
            said[sentence] = None
        return found

    for model in dict.fromkeys(cell.model for cell in cells):
        here = [cell for cell in cells if cell.model == model]
        transfers = {cell.task: cell for cell in here if cell.source is not None}
        for cell in {c.task: c for c in here if c.task not in transfers}.values():
            r = cell.recipe
            adapter = f"LoRA r={r.lora_rank}" if r.method == "lora" else "full fine-tuning"
            click.echo(
                f"{cell.card.label} on {cell.task}: {adapter}, {there(cell, 'train'):,} examples x "
                f"{r.epochs} epochs, batch {r.batch_size}, learning rate {r.learning_rate:g}; "
                f"validation {there(cell, 'validation'):,}, test {there(cell, 'test'):,}."
            )
        for cell in transfers.values():
            click.echo(f"  and a test of transfer on {cell.task}: {there(cell, 'test'):,}.")
        if (note := here[0].engine_note) is not None:
            click.echo(f"  {note}")
    for sentence in said:
        click.echo(sentence)


def _print_plan(run: object, cells: list[Cell]) -> None:
    from ..estimate import seconds, spell_seconds
    from ..run_directory import RunDirectory

    assert isinstance(run, RunDirectory)
    click.echo(f"Output folder: {run.path}")
    total = 0.0
    for cell in cells:
        stages = run.missing(cell)
        estimate = seconds(cell, stages) if stages else 0.0
        total += estimate
        state = (
            "done" if not stages else f"to do: {', '.join(stages)}, about {spell_seconds(estimate)}"
        )
        click.echo(f"  {cell.addresses['train']}  {cell.label}: {state}")
    click.echo(f"{len(cells)} cells, about {spell_seconds(total)} on this CPU (a rough estimate).")
