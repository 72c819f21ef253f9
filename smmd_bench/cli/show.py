"""`smmd-bench show CELL`: one example, and what every loss made of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion, options

if TYPE_CHECKING:
    from rich.console import Console

    from .showing.cell import Group
    from .showing.example import Answered, Shown

_LONGEST = 1500
_MARKS = {True: ("right", "green"), False: ("wrong", "red"), None: ("-", "dim")}


@click.command()
@click.argument("cell", required=False, metavar="[CELL|RUN]", shell_complete=completion.runs)
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    default=None,
    help="The run that CELL is of (default: the newest one in runs/).",
)
@click.option("--model", default=None, help="A cell of this model.")
@click.option("--task", default=None, shell_complete=completion.tasks, help="A cell of this task.")
@click.option(
    "--loss", default=None, shell_complete=completion.run_losses, help="A cell of this loss."
)
@click.option("--seed", type=int, default=None, help="A cell of this seed.")
@click.option(
    "--uid", default=None, help="Which example (default: the first on which the losses disagree)."
)
@options.as_json
def command(
    cell: str | None,
    run: Path | None,
    model: str | None,
    task: str | None,
    loss: str | None,
    seed: int | None,
    uid: str | None,
    as_json: bool,
) -> None:
    """Show one test example: prompt, target, and of every loss of the same model, task and seed
    the completion, the value read from it, and the digit distributions.

    CELL is an address or a beginning of one that no other has, or a cell's folder. With a RUN, or
    with neither, the options say which cell; without them it is the first trained one. Naming a
    cell looks for an example on which it and another loss differ.

    \b
    Examples:
      smmd-bench show
      smmd-bench show 3f9c
      smmd-bench show runs/NAME --loss smmd --seed 1
      smmd-bench show runs/NAME --task arithmetic --uid test-0-5 --json
    """
    from .run_plugins import load_plugins_of
    from .showing.cell import Wanted, find_group
    from .showing.example import find_example
    from .terminal import new_console
    from .voice import Voice

    group = find_group(Wanted(cell, run, model, task, loss, seed))
    if group.run.manifest.get("plugins"):
        load_plugins_of([group.run.path], Voice(as_json=as_json))
    shown = find_example(group, uid)
    if as_json:
        _print_json(group, shown)
        return
    console = new_console()
    _print_question(console, group, shown)
    _print_answers(console, group, shown.answers)
    _print_distributions(console, shown.answers)


def _print_json(group: Group, shown: Shown) -> None:
    import json
    from dataclasses import asdict

    content = {"run": str(group.run.path), **group.title, "named": group.named, **asdict(shown)}
    click.echo(json.dumps(content, indent=1, ensure_ascii=False, default=str))


def _print_question(console: Console, group: Group, shown: Shown) -> None:
    from rich.text import Text

    from .terminal import plain

    title = group.title
    console.print(Text(f"{title['model']}  {title['task']}  seed {title['seed']}", style="bold"))
    console.print(Text(str(group.run.path), style="dim"), soft_wrap=True)
    console.print(Text(f"Example {shown.uid} ({shown.why})"))
    if shown.image is not None:
        there = "" if shown.image.is_file() else "  (no longer there)"
        console.print(Text(f"Picture {shown.image}{there}"), soft_wrap=True)
    console.print(Text("\nPrompt", style="bold"))
    console.print(Text(_cut(plain(shown.prompt))))
    console.print(Text("\nTarget", style="bold"))
    console.print(Text(_cut(plain(shown.target))))


def _print_answers(console: Console, group: Group, answers: tuple[Answered, ...]) -> None:
    from rich.text import Text

    from .terminal import new_table, plain, print_table

    table = new_table(header_style="bold")
    table.add_column("Loss", overflow="fold", max_width=22)
    table.add_column("Mark", no_wrap=True)
    table.add_column("Parsed", overflow="fold", max_width=16)
    table.add_column("Completion", overflow="fold", ratio=1)
    for answer in answers:
        mark, style = _MARKS[answer.right]
        parsed = "none" if answer.right is not None else "-"
        if answer.parsed is not None:
            parsed = f"{answer.parsed:.12g}"
        text = Text(_cut(plain(answer.completion)))
        if answer.finish_reason == "length":
            text.append(" [cut off]", style="yellow")
        name = ("* " if answer.address == group.named else "") + answer.loss
        table.add_row(Text(name), Text(mark, style=style), Text(parsed), text)
    console.print()
    print_table(console, table)


def _print_distributions(console: Console, answers: tuple[Answered, ...]) -> None:
    from rich.text import Text

    from .showing.plot import BLOCKS, bands

    probed = [answer for answer in answers if answer.distributions]
    if not probed:
        console.print(Text("\nThis example has no digit probes.", style="dim"))
        return
    try:
        (BLOCKS + "▼").encode(console.encoding)
        blocks = True
    except UnicodeEncodeError:
        blocks = False
    longest = min(22, max(len(answer.loss) for answer in probed))
    console.print(Text("\nProbability of each digit, given the true text before it", style="bold"))
    for band in bands(probed, console.width - longest - 2, blocks=blocks):
        console.print()
        for head in band.heads:
            console.print(Text(f"{'':<{longest}}  {head}", style="dim"), soft_wrap=True)
        for loss, line in band.rows:
            name = loss if len(loss) <= longest else loss[: longest - 1] + "~"
            console.print(Text(f"{name:<{longest}}  {line}"), soft_wrap=True)
    mark = "▼" if blocks else "v"
    note = f"\n{mark} the true digit; p: the probability of the true token among numeric tokens."
    if any(_outside(answer) for answer in probed):
        note += " answer 1: the first digit of the final answer; token 1: the first number of the"
        note += " target, outside the answer."
    if any(len(a.distributions) and _several(a) for a in probed):
        note += " Tokens of several digits are shown by their leading one."
    console.print(Text(note, style="dim"))


def _several(answer: Answered) -> bool:
    return any(found.target_value >= 10 for found in answer.distributions)


def _outside(answer: Answered) -> bool:
    from ..decoding.answer_digits import OUTSIDE

    return any(found.answer_digit == OUTSIDE for found in answer.distributions)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (all of it with --json)"
