"""What a caption says of the sample: test examples, seeds, completions that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.results.made_with import differences
from smmd_bench.results.opponents import WITHOUT_EFFECT

from ._cells import measured

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run

BASE = "base"


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
        parts.append(_seeds(shown) + ("" if of_run is None else _left_out(cells, of_run)))
    text = "; ".join(filter(None, [*parts, _unreadable(metrics)])) + "."
    made_with = differences(run.current(str(address)) for address in shown["address"])
    return text + _differing("trained", _recipes(shown)) + _differing("made", made_with)


def _examples(metrics: pd.DataFrame) -> str:
    sizes = metrics.groupby("address", observed=True).agg({"task": "first", "n": "max"})
    found = {
        str(task): " or ".join(f"{size:,}" for size in sorted(group["n"].unique()))
        for task, group in sizes.groupby("task", observed=True)
    }
    same = len(set(found.values())) == 1
    text = ", ".join(f"{n} ({task})" for task, n in found.items())
    return f"n = {next(iter(found.values())) if same else text} test examples"


def _seeds(cells: pd.DataFrame) -> str:
    """The seeds of most losses; those of others are named."""
    trained = cells[cells["loss"] != BASE]
    several = {name: trained[name].nunique() > 1 for name in ("model", "task")}
    losses: dict[str, list[str]] = {}
    for (model, task, loss), group in trained.groupby(["model", "task", "loss"], observed=True):
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
    """The largest shares of completions without an answer, of the trained and untuned models."""
    rates = metrics[metrics["metric"] == "parse_failure_rate"].dropna(subset="value")
    several = rates["task"].nunique() > 1
    ranked = rates.assign(untuned=rates["loss"] == BASE).sort_values(
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
    for _, group in cells[cells["loss"] != BASE].groupby(["model", "task"], observed=True):
        recipes = list(group["recipe"])
        for name in dict.fromkeys(k for r in recipes for k in r if k not in WITHOUT_EFFECT):
            values = dict.fromkeys(str(recipe.get(name)) for recipe in recipes)
            if len(values) > 1:
                found.setdefault(name, {}).update(values)
    return {name: list(values) for name, values in found.items()}


def _differing(what: str, found: Mapping[str, Sequence[str]]) -> str:
    """A sentence on what the cells were not all made with alike."""
    texts = [f"{name} ({' or '.join(values)})" for name, values in found.items()]
    return f" The cells were {what} with different {' and '.join(texts)}." if texts else ""


def _percent(value: float) -> str:
    """`45.5 %`; a share that one decimal would show as none has the decimals that it needs."""
    text = f"{value:.1f}"
    return f"{value:.1g} %" if value > 0 == float(text) else f"{text} %"


def named_seeds(cells: pd.DataFrame) -> str:
    """`seed 0` or `seeds 0, 1, 2`."""
    seeds = sorted(cells["seed"].unique())
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
