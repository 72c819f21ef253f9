"""`smmd-bench show CELL`: one example, and what every loss answered."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, options
from .terminal import new_console, new_table, plain, print_json, print_table
from .voice import Voice

if TYPE_CHECKING:
    from rich.console import Console

    from .show_views.cells import Group
    from .show_views.example import Answered, Shown

_LONGEST = 1500
_MARKS = {True: ("right", "green"), False: ("wrong", "red"), None: ("-", "dim")}


@click.command()
@click.argument("name", required=False, metavar="[CELL|RUN]", shell_complete=completion.runs)
@click.option(
    "--run", type=options.PATH, help="The run of the CELL (default: the newest one in runs/)."
)
@click.option("--model", help="A cell of this model.")
@click.option("--task", shell_complete=completion.tasks, help="A cell of this task.")
@click.option("--loss", shell_complete=completion.run_losses, help="A cell of this loss.")
@click.option("--seed", type=int, help="A cell of this seed.")
@click.option("--uid", help="Which example (default: the first on which the losses disagree).")
@options.as_json
@options.plugin
def command(
    name: str | None, run: Path | None, uid: str | None, as_json: bool, **filters: Any
) -> None:
    """Show one example: what each loss wrote, and its digits.

    It prints prompt and target of a test example and, for every loss of the same model, task and
    seed, the completion, the value read from it, and the digit distributions.

    CELL is an address, the beginning of one, or a cell's folder. Without it the options choose a
    cell of RUN, or of the newest run; by default the first trained one. If you name a cell, the
    example is one on which it and another loss differ.

    \b
    Examples:
      smmd-bench show
      smmd-bench show 3f9c
      smmd-bench show runs/NAME --loss smmd --seed 1
      smmd-bench show runs/NAME --task arithmetic --uid test-0-5 --json
    """
    from .run_plugins import load_plugins_of
    from .show_views.cells import find_group
    from .show_views.example import find_example

    group = find_group(name, run, filters)
    voice = Voice(as_json=as_json)
    if group.run.manifest.get("plugins"):
        load_plugins_of([group.run.path], voice)
    shown = find_example(group, uid)
    if as_json:
        content = {"run": str(group.run.path), **group.title, "named": group.named}
        print_json({**content, **asdict(shown)})
        return
    console = new_console()
    _print_question(console, group, shown)
    _print_answers(console, group, shown.answers)
    _print_distributions(console, shown.answers)


def _print_question(console: Console, group: Group, shown: Shown) -> None:
    console.print("{model}  {task}  seed {seed}".format(**group.title), style="bold")
    console.print(str(group.run.path), style="dim", soft_wrap=True)
    console.print(f"Example {shown.uid} ({shown.why})")
    if shown.image is not None:
        there = "" if Path(shown.image).is_file() else "  (no longer there)"
        console.print(f"Picture {shown.image}{there}", soft_wrap=True)
    for label, text in (("Prompt", shown.prompt), ("Target", shown.target)):
        console.print(f"\n{label}", style="bold")
        console.print(_cut(plain(text)))


def _print_answers(console: Console, group: Group, answers: tuple[Answered, ...]) -> None:
    from rich.text import Text

    table = new_table(
        {"header": "Loss", "overflow": "fold", "max_width": 22},
        {"header": "Mark", "no_wrap": True},
        {"header": "Parsed", "overflow": "fold", "max_width": 16},
        {"header": "Completion", "overflow": "fold", "ratio": 1},
        header_style="bold",
        show_header=True,
    )
    for answer in answers:
        mark, style = _MARKS[answer.right]
        parsed = "-" if answer.right is None else "none"
        if answer.parsed is not None:
            parsed = f"{answer.parsed:.12g}"
        text = Text(_cut(plain(answer.completion)))
        if answer.finish_reason == "length":
            text.append(" [cut off]", style="yellow")
        name = ("* " if answer.address == group.named else "") + answer.loss
        table.add_row(name, Text(mark, style), parsed, text)
    console.print()
    print_table(console, table)


def _print_distributions(console: Console, answers: tuple[Answered, ...]) -> None:
    from ..decoding.probe import OUTSIDE
    from .show_views.plot import draw_bands

    probed = [answer for answer in answers if answer.distributions]
    if not probed:
        console.print("\nThis example has no digit probes.", style="dim")
        return
    longest = min(22, max(len(answer.loss) for answer in probed))
    console.print("\nProbability of each digit, given the true text before it", style="bold")
    for band in draw_bands(probed, console.width - longest - 2):
        console.print()
        for head in band.heads:
            console.print(f"{'':<{longest}}  {head}", style="dim", soft_wrap=True)
        for loss, line in band.rows:
            name = loss if len(loss) <= longest else loss[: longest - 1] + "~"
            console.print(f"{name:<{longest}}  {line}", soft_wrap=True)
    found = [distribution for answer in probed for distribution in answer.distributions]
    note = "\n▼ the true digit; p: the probability of the true token among numeric tokens."
    if any(distribution.answer_digit == OUTSIDE for distribution in found):
        note += " answer 1: the first digit of the final answer; token 1: the first number of the"
        note += " target, outside the answer."
    if any(distribution.target_value >= 10 for distribution in found):
        note += " Tokens of several digits are shown by their leading one."
    console.print(note, style="dim")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (all of it with --json)"
