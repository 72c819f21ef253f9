"""`smmd-bench show RUN`: the cells of a run, what one wrote, wrong answers, flips, one example."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UserError, did_you_mean
from . import options
from .voice import print_json, print_results, print_sentence, rows_of

if TYPE_CHECKING:
    import pandas as pd

    from ..results.answers import Answers
    from ..results.frames import RunFrames

_ANSWER = ("uid", "target", "loss", "seed", "parsed", "completion", "finish_reason")
_DIGITS = [f"p{digit}" for digit in range(10)]
_PROBABILITIES = (
    "p: probability (%) of each true digit or token, given the true text before it."
)


@click.command()
@click.argument("run", type=options.PATH)
@options.cells
@click.option(
    "--wrong",
    is_flag=True,
    help="Show the wrong answers of each cell, the largest errors first.",
)
@click.option(
    "--flips",
    metavar="LOSS",
    help="Show what this loss has right and CE of the same seed wrong, or the other way; ce "
    "itself is held against the untuned model.",
)
@click.option(
    "--uid",
    metavar="UID",
    help="Show this example, and what every one of the cells answers.",
)
@click.option(
    "-n",
    "--limit",
    "count",
    default=10,
    type=click.IntRange(1),
    help="How many examples of one cell to show.",
)
@options.as_json
@options.plugin
def command(
    run: Path,
    wrong: bool,
    flips: str | None,
    uid: str | None,
    count: int,
    as_json: bool,
    **filters: str | int | None,
) -> None:
    """Show a run's cells, what one cell wrote, or one example.

    Of one cell its first test examples are shown; with --uid one example by all of the cells, with
    the probabilities of its digits.

    \b
    Examples:
      smmd-bench show runs/NAME --wrong --loss smmd --seed 0
      smmd-bench show runs/NAME --flips ntl -n 20
      smmd-bench show runs/NAME --task arithmetic --uid test-0-5
    """
    from ..results.answers import find_flips, find_wrong
    from ..results.frames import read_run

    if sum([wrong, flips is not None, uid is not None]) > 1:
        raise UserError(
            "show takes one of --wrong, --flips and --uid: leave out others."
        )
    if flips is not None:
        options.refuse_flags("--flips names its loss", "loss")
        filters["loss"] = flips

    frames = read_run(run)
    cells = options.filter_cells(frames, filters)
    if uid is not None:
        _show_example(frames, cells, uid, as_json)
    elif wrong or flips is not None:
        found = [*(find_wrong if wrong else find_flips)(frames, cells)]
        _show_answers(frames, found, count, as_json)
    else:
        _show_cells(frames, cells, count, as_json)


def _show_cells(run: RunFrames, cells: pd.DataFrame, count: int, as_json: bool) -> None:
    """Show the first answers of one cell, or a row for each of several."""
    import pandas as pd

    if len(cells) == 1:
        table = run.only(cells).completions.head(count)
        if table.empty:
            raise UserError(
                f"That cell of {run.path} has no answers: give the command of the run again."
            )
    else:
        columns = ["address", "model", "task", "loss", "seed", "status", "metric"]
        table = cells.assign(metric=_name_selecting(run, cells))[columns]
        values = run.metrics.set_index(["address", "metric"])["value"]
        keys = pd.MultiIndex.from_frame(table[["address", "metric"]])
        table["value"] = values.reindex(keys).to_numpy()
    if as_json:
        print_json({"run": str(run.path), "rows": rows_of(table)})
        return

    # A prompt would hide the answer beside it.
    if "completion" in table:
        table = table[[name for name in ("exact", *_ANSWER) if name in table]]
    _print_rows(table, str(run.path))


def _name_selecting(run: RunFrames, cells: pd.DataFrame) -> pd.Series[str]:
    """Name the metric by which the epochs of each cell's task were chosen, else its first one."""
    first = run.metrics.drop_duplicates("task").set_index("task")["metric"]
    chosen = run.selection.drop_duplicates("task").set_index("task")["selection_metric"]
    return cells["task"].astype("str").map({**first, **chosen})


def _show_answers(
    run: RunFrames, found: Sequence[Answers], count: int, as_json: bool
) -> None:
    """Show the first of the answers of each cell, and how many there are."""
    if not found:
        raise UserError(
            f"No such cell of {run.path} is measured, or none has an opponent of its seed, as the "
            "reference itself: `smmd-bench show` lists the cells."
        )
    if as_json:
        cells: list[dict[str, Any]] = []
        for answers in found:
            rows = rows_of(answers.rows.head(count))
            cells.append({**answers.cell, **answers.counts, "rows": rows})
        print_json({"run": str(run.path), "cells": cells})
        return

    for answers in found:
        title = _count_answers(answers, count)
        # A model and a task are named where there are several.
        several = [name for name in ("model", "task") if run.cells[name].nunique() > 1]
        title = " ".join([title, *(f"({answers.cell[name]})" for name in several)])
        if answers.rows.empty:
            print_sentence(title)
        else:
            _print_rows(_arrange(answers).head(count), title)
    if any(answers.rows["p_target"].notna().any() for answers in found):
        print_sentence(_PROBABILITIES)


def _count_answers(answers: Answers, count: int) -> str:
    """`NTL, seed 0: 12 of 200 wrong; the first 10, largest errors first`."""
    from ..publishing.style import loss_label
    from ..results.answers import ERROR

    cell, counts = answers.cell, answers.counts
    label = loss_label(str(cell["loss"]))
    total = len(answers.rows)
    # The untuned model has no training seed.
    which = label if cell["loss"] == "base" else f"{label}, seed {cell['seed']}"
    sentence = f"{which}: {total} of {counts['of']} wrong"
    is_sorted = ERROR in answers.rows and answers.rows[ERROR].notna().any()
    order = ", largest errors first" if is_sorted else ""
    if "gained" in counts:
        other = loss_label(str(cell["against_loss"]))
        sentence = (
            f"{which}: {total} of {counts['of']} flip (+{counts['gained']} only {label} has right, "
            f"−{counts['lost']} only {other})"
        )
    return f"{sentence}; the first {count}{order}" if total > count else sentence


def _arrange(answers: Answers) -> pd.DataFrame:
    """The rows for people: of flips both completions side by side, and who is right."""
    from ..publishing.style import loss_label, shortened

    rows = answers.rows
    names = {"uid": "uid", "target": "target"}
    if "against_loss" in answers.cell:
        mine, other = (
            loss_label(str(answers.cell[name])) for name in ("loss", "against_loss")
        )
        # A file of completions may have a long name, of which the middle tells it from another.
        if shortened(mine, 14) != shortened(other, 14):
            mine, other = shortened(mine, 14), shortened(other, 14)
        names |= {"against_completion": other, "completion": mine, "right": "right"}
        names |= {"against_p_target": f"p {other}", "p_target": f"p {mine}"}
        rows = rows.assign(right=rows["right"].map({True: mine, False: other}))
    else:
        names |= {name: name for name in ("completion", "parsed", "error")}
        names["p_target"] = "p"

    # Probes of few examples, or of none, leave nothing to show of the others.
    columns = [name for name in names if rows[name].notna().any()]
    table = rows[columns].rename(columns=names)
    table.attrs["values"] = [*table]
    return table


def _show_example(run: RunFrames, cells: pd.DataFrame, uid: str, as_json: bool) -> None:
    """Show what the cells wrote for one example, and what they thought of its digits."""
    from ..results.answers import name_right, read_probes

    rows = _find_example(run, cells, uid)
    right = name_right(rows, str(rows["task"].iloc[0]))
    probes = read_probes(run, rows["address"])
    probes = probes[probes["uid"] == uid]
    if as_json:
        content = {"run": str(run.path), "right": right, "rows": rows_of(rows)}
        print_json({**content, "probes": rows_of(probes)})
        return

    # All rows share the prompt, which stands above the table.
    shown = rows[["prompt", *(name for name in _ANSWER if name in rows)]]
    if right is not None:
        shown.insert(5, "right", rows[right].map({True: "yes", False: "no"}))
    _print_rows(shown, str(run.path))
    if probes.empty:
        return

    # Digit by digit, so that losses stand below each other.
    probes = probes.sort_values("answer_digit", kind="stable")
    shares = probes[["p_target", *_DIGITS]].mul(100).round().astype("int64")
    digits = probes[["target_value", "loss", "seed"]].join(shares)
    target = str(rows["target"].iloc[0])
    is_tenth = _find_tenths(probes, target)
    true = digits["target_value"].astype("int64").astype("str")
    digits["target_value"] = true.where(~is_tenth, "." + true)
    names = {f"p{digit}": str(digit) for digit in range(10)}
    digits = digits.rename(columns={"target_value": "true", "p_target": "p", **names})
    digits.attrs["values"] = [*digits]
    caption = f"{_PROBABILITIES} 0 to 9: of all tokens whose value begins so."
    _print_rows(digits, "Digit probabilities", caption)


def _find_tenths(probes: pd.DataFrame, target: str) -> pd.Series[bool]:
    """Which digits stand behind the decimal point of the answer that ends the target."""
    _, point, decimals = target.rpartition(".")
    # A token of several digits hides where the point is.
    has_digits = bool((probes["target_value"] < 10).all())
    if not (point and decimals.isdigit() and has_digits):
        decimals = ""
    places: pd.Series[int] = probes["answer_digit"]
    return places == places.max() + 1 - len(decimals)


def _find_example(run: RunFrames, cells: pd.DataFrame, uid: str) -> pd.DataFrame:
    """What the cells wrote for an example. Raises UserError if none has it, or tasks share it."""
    answers = run.only(cells).completions
    rows = answers[answers["uid"] == uid]
    if rows.empty:
        hint = did_you_mean(uid, answers["uid"].drop_duplicates().head(2000))
        raise UserError(f"{run.path} has no test example '{uid}': {hint[:300]}")
    # A chat template gets the prompt without blanks around it.
    if rows["prompt"].str.strip().nunique() > 1:
        raise UserError(
            f"Several tasks of {run.path} have an example '{uid}': add --task."
        )
    return rows


def _print_rows(table: pd.DataFrame, title: str, caption: str = "") -> None:
    """Print rows as texts; what never changes stands above, except answers."""
    import pandas as pd

    texts = [[*map(_plain, row.values())] for row in rows_of(table)]
    printed = pd.DataFrame(texts, columns=table.columns)
    printed.attrs["values"] = table.attrs.get("values", ["completion", "right", "p"])
    # People copy it for --uid.
    printed.attrs["whole"] = ["uid"]
    print_results(printed, title, caption, "--json")


def _plain(value: object) -> str:
    """A value for people; the control characters of a text are escaped, as they move the cursor."""
    if value is None:
        return "-"
    # The probabilities of the digits of an answer.
    if isinstance(value, list):
        return " ".join(f"{100 * p:.0f}" for p in value)
    text = str(value)
    if isinstance(value, float):
        text = f"{value:.6g}"
    characters = []
    for c in text:
        is_harmless = c.isprintable() or c in "\n\t"
        characters.append(c if is_harmless else f"\\x{ord(c):02x}")
    return "".join(characters)
