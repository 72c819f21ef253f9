"""The caption of a table or figure, and its notes, sentence by sentence.

The caption says what is shown, of how many examples and seeds, and which cells have no result; the
notes how to read intervals, tests and published values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.results.made_with import differences
from smmd_bench.results.opponents import WITHOUT_EFFECT

from ._cells import KEY, measured, why_of
from ._paper import reference
from ._significance import LEVEL, floor_of
from ._tuning import tuning_note
from ._values import P_HOLM, TO_PAPER

INTERVALS = (
    "95 % intervals over the test examples (of a share Wilson's, else the percentile bootstrap's)"
)
DEVIATION = "standard deviation over training seeds"


class Words(TypedDict):
    """Two fields of an `Artefact`."""

    caption: str
    notes: list[str]


def write_caption(
    run: Run, cells: pd.DataFrame, shown: str, *notes: str, sample: str | None = None
) -> Words:
    """The first sentence of `shown`, the sample, what was tuned, and which of the cells have no
    result; the rest of `shown` and the notes, each of some sentences, or empty, become notes.

    `sample` replaces the sentence with the examples, seeds and parse failures of the cells
    (`sample_note`).
    """
    sample = sample_note(run, cells) if sample is None else sample
    more = join_sentences(sample, tuning_note(run, cells), missing_note(cells))
    return split_caption(shown, *notes, more=more)


def split_caption(shown: str, *notes: str, more: str = "") -> Words:
    """A caption of the first sentence and `more`; everything else as notes."""
    first, stop, rest = shown.strip().partition(". ")
    lead = f"{first}." if stop else first
    said = [note.strip() for note in (rest, *notes) if note.strip()]
    return {"caption": join_sentences(lead, more), "notes": said}


def join_sentences(*parts: str) -> str:
    """The parts with a space between; an empty one is left out."""
    return " ".join(part.strip() for part in parts if part.strip())


def when(holds: object, sentence: str) -> str:
    """The sentence where that holds, else an empty one."""
    return sentence if holds else ""


def decoding_note(run: Run) -> str:
    """How the completions were made."""
    made_elsewhere = "predictions" in run.manifest
    return "Completions made elsewhere." if made_elsewhere else "Greedy decoding."


def spread_note(data: pd.DataFrame, *key: str) -> str:
    """What brackets and ± mean in a table of these cells; `key` tells its rows apart, besides
    model, task and loss."""
    sizes = _seeds(data, *key)
    parts = [f"Brackets: {INTERVALS}"] * bool((sizes == 1).any())
    parts += [f"±: {DEVIATION}"] * bool((sizes > 1).any())
    return f"{'; '.join(parts)}." if parts else ""


def significance_note(data: pd.DataFrame, other: str) -> str:
    """What p, parentheses and bold mean in a table of tested cells, compared with `other`."""
    opponent = loss_label(other)
    sizes = _seeds(data)
    tests = ["McNemar's exact test"] * bool((sizes == 1).any())
    tests += ["a mixed model of seeds and test examples"] * bool((sizes > 1).any())
    test = ", or of several seeds ".join(tests)
    bold = "Bold (* on a terminal): the best loss of a model and task, where it beats"
    return (
        f"{P_HOLM}: {test} against {opponent}, corrected by Holm over the losses of a model and "
        "task. In parentheses behind a difference: the smallest true one that its test finds with "
        f"a probability of 80 %{few_seeds(sizes)}. {bold} {opponent} with a corrected p below "
        f"{LEVEL}{'' if data['best'].any() else ' (none does)'}."
    )


def few_seeds(sizes: pd.Series[int]) -> str:
    """What a power of 80 % leaves out, where rows have two or three seeds (docs/statistics.md)."""
    return when(sizes.isin([2, 3]).any(), ", with two or three seeds less often")


def noise_note(data: pd.DataFrame, other: str) -> str:
    """A sentence on the row of `other`, where a table compares it with itself."""
    own = data[data["loss"] == other].filter(regex="gain$")
    return when(own.notna().any(axis=None), floor_of(loss_label(other)))


def _seeds(data: pd.DataFrame, *key: str) -> pd.Series[int]:
    """How many measured seeds each row of a table has."""
    return measured(data).groupby([*KEY, *key], observed=True)["seed"].nunique()


def paper_note(table: str, unsaid: str, metric: str) -> str:
    """Where published values are from, and what the paper does not report of them."""
    where = f"{reference(table)}, which does not report its {unsaid}"
    return f"Paper: {where}; {TO_PAPER}: {metric} minus that."


def outside_note(run: Run) -> str:
    """A sentence on digits outside V_num, which only cross-entropy sees; empty if there are none.

    At N = 1000 "05" is one token and no canonical integer.
    """
    shares: dict[str, float] = {}
    for address, model in zip(run.cells["address"], run.cells["model"], strict=True):
        receipt = run.current(str(address)).receipt or {}
        targets = receipt.get("numeric_targets") or {}
        if targets.get("outside"):
            shares[str(model)] = 100 * targets["outside"] / targets["digit_tokens"]
    found = ", ".join(f"{share:.1f} % with {model}" for model, share in shares.items())
    return f"Digit tokens of the training targets outside V_num: {found}." if found else ""


def missing_note(cells: pd.DataFrame) -> str:
    """A sentence that names the cells without results; empty if there are none.

    Losses that lack the same seeds for the same reason stand together.
    """
    several = cells["task"].nunique() > 1
    losses: dict[tuple[str, str, str], list[str]] = {}
    lacking = cells[cells["status"] != "done"]
    for (model, task, loss), group in lacking.groupby(KEY, observed=True):
        where = f"{model} {task}" if several else str(model)
        reasons = pd.Series(list(map(why_of, group["status"], group["stage"])), group.index)
        for why, own in group.groupby(reasons):
            losses.setdefault((where, named_seeds(own), str(why)), []).append(str(loss))
    named = [f"{at} {', '.join(own)} {seeds} ({why})" for (at, seeds, why), own in losses.items()]
    return f"Without a result: {'; '.join(named)}." if named else ""


def named_seeds(cells: pd.DataFrame) -> str:
    """`seed 0` or `seeds 0, 1, 2`."""
    seeds = sorted(cells["seed"].unique())
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def sample_note(run: Run, cells: pd.DataFrame, of_run: pd.DataFrame | None = None) -> str:
    """A sentence with n, seeds and parse failures of the measured cells; further ones where their
    recipes, software or devices differ. Empty if no cell is measured.

    `of_run` are all cells of these losses, models and tasks, where fewer are shown: the seeds that
    are left out are named.
    """
    shown = measured(cells)
    if shown.empty:
        return ""
    metrics = run.metrics[run.metrics["address"].isin(shown["address"])]
    parts = [_examples(metrics)]
    if "predictions" not in run.manifest:
        parts.append(_seeds_of_losses(shown) + ("" if of_run is None else _left_out(cells, of_run)))
    text = "; ".join(filter(None, [*parts, _unreadable(metrics)]))
    made_with = differences(run.current(str(address)) for address in shown["address"])
    recipes = _differing("trained", _recipes(shown))
    return join_sentences(f"{text}.", recipes, _differing("made", made_with))


def _examples(metrics: pd.DataFrame) -> str:
    sizes = metrics.groupby("address", observed=True).agg({"task": "first", "n": "max"})
    found = {
        str(task): " or ".join(f"{size:,}" for size in sorted(group["n"].unique()))
        for task, group in sizes.groupby("task", observed=True)
    }
    same = len(set(found.values())) == 1
    text = ", ".join(f"{n} ({task})" for task, n in found.items())
    return f"n = {next(iter(found.values())) if same else text} test examples"


def _seeds_of_losses(cells: pd.DataFrame) -> str:
    """The seeds of most losses; those of others are named."""
    trained = cells[cells["loss"] != "base"]
    several = {name: trained[name].nunique() > 1 for name in ("model", "task")}
    losses: dict[str, list[str]] = {}
    for (model, task, loss), group in trained.groupby(KEY, observed=True):
        where = f" on {task}" * several["task"]
        where += f" with {model_label(str(model))}" * several["model"]
        losses.setdefault(named_seeds(group), []).append(loss_label(str(loss)) + where)
    usual = max(losses, key=lambda seeds: len(losses[seeds]), default="")
    others = [f"{', '.join(named)}: {seeds}" for seeds, named in losses.items() if seeds != usual]
    return f"{usual} ({'; '.join(others)})" if others else usual


def _left_out(cells: pd.DataFrame, of_run: pd.DataFrame) -> str:
    left = of_run[~of_run["address"].isin(cells["address"])]
    losses = ", ".join(map(loss_label, left["loss"].unique()))
    return f" ({named_seeds(left)} of {losses} left out, which not every row has)" if losses else ""


def _unreadable(metrics: pd.DataFrame) -> str:
    """The largest shares of completions without an answer, of the trained and untuned models;
    empty where all have one."""
    rates = metrics[(metrics["metric"] == "parse_failure_rate") & (metrics["value"] > 0)]
    several = rates["task"].nunique() > 1
    ranked = rates.assign(untuned=rates["loss"] == "base").sort_values(
        ["untuned", "value"], ascending=[True, False], kind="stable"
    )
    worst = [
        f"{_percent(row['value'])} ({loss_label(row['loss'])}"
        + f" on {row['task']}" * several
        + ")"
        for row in ranked.drop_duplicates("untuned").to_dict("records")
    ]
    return f"at most {', '.join(worst)} of a cell's completions have no number" if worst else ""


def _recipes(cells: pd.DataFrame) -> dict[str, list[str]]:
    """The settings in which recipes of trained cells of a model and task differ."""
    found: dict[str, dict[str, None]] = {}
    for _, group in cells[cells["loss"] != "base"].groupby(["model", "task"], observed=True):
        recipes = list(group["recipe"])
        for name in dict.fromkeys(k for r in recipes for k in r if k not in WITHOUT_EFFECT):
            values = dict.fromkeys(str(recipe.get(name)) for recipe in recipes)
            if len(values) > 1:
                found.setdefault(name, {}).update(values)
    return {name: list(values) for name, values in found.items()}


def _differing(what: str, found: Mapping[str, Sequence[str]]) -> str:
    """A sentence on what the cells were not all made with alike."""
    texts = [f"{name} ({' or '.join(values)})" for name, values in found.items()]
    return f"The cells were {what} with different {' and '.join(texts)}." if texts else ""


def _percent(value: float) -> str:
    """`45.5 %`; a share that one decimal would show as none has the decimals that it needs."""
    text = f"{value:.1f}"
    return f"{value:.1g} %" if value > 0 == float(text) else f"{text} %"


def steps_note(data: pd.DataFrame) -> str:
    """A sentence with the seeds of a frame of training logs, and how many steps they have."""
    steps = {
        f"{model_label(str(model))} on {task}": int(group["step"].max())
        for (model, task), group in data.groupby(["model", "task"], observed=True)
    }
    each = ", ".join(f"{n:,} ({name})" for name, n in steps.items())
    length = f"{data['step'].max():,}" if len({*steps.values()}) == 1 else each
    return f"{named_seeds(data).capitalize()}; optimiser steps: {length}."
