"""What a caption says of the sample: test examples, seeds, completions that cannot be read."""

from __future__ import annotations

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
    return text + _recipes(shown) + _software(run, shown)


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
    """The seeds of the trained cells; what has others than most is named."""
    trained = cells[cells["loss"] != BASE]
    models = trained.groupby("task", observed=True)["model"].nunique().to_dict()
    which: dict[str, list[str]] = {}
    fewer = []
    for (model, task), group in trained.groupby(["model", "task"], observed=True):
        name = " with ".join(
            [str(task)] * (len(models) > 1) + [model_label(str(model))] * (models[task] > 1)
        )
        found = {loss: named_seeds(rows) for loss, rows in group.groupby("loss", observed=True)}
        usual = max(found.values(), key=lambda seeds: list(found.values()).count(seeds))
        which.setdefault(usual, []).append(name)
        fewer += [
            f"{loss_label(str(loss))}{f' on {name}' * bool(name)}: {seeds}"
            for loss, seeds in found.items()
            if seeds != usual
        ]
    if len(which) > 1:
        text = ", ".join(f"{seeds} ({', '.join(names)})" for seeds, names in which.items())
    else:
        text = next(iter(which), "")
    return f"{text} ({'; '.join(fewer)})" if fewer else text


def _left_out(cells: pd.DataFrame, of_run: pd.DataFrame) -> str:
    left = of_run[~of_run["address"].isin(cells["address"])]
    if left.empty:
        return ""
    losses = ", ".join(loss_label(str(loss)) for loss in left["loss"].drop_duplicates())
    return f" ({named_seeds(left)} of {losses} left out, which not every row has)"


def _unreadable(metrics: pd.DataFrame) -> str:
    """The largest shares of completions without an answer, of the trained and untuned models."""
    rates = metrics[metrics["metric"] == "parse_failure_rate"].dropna(subset="value")
    several = rates["task"].nunique() > 1
    trained, untuned = rates[rates["loss"] != BASE], rates[rates["loss"] == BASE]
    worst = [kind.iloc[kind["value"].argmax()] for kind in (trained, untuned) if len(kind)]
    if not worst:
        return ""
    names = [loss_label(str(r["loss"])) + f" on {r['task']}" * several for r in worst]
    besides = [
        f"{name} {_percent(row['value'])}" for name, row in zip(names[1:], worst[1:], strict=True)
    ]
    return (
        f"at most {_percent(worst[0]['value'])} of a cell's completions have no number "
        f"({'; '.join([names[0], *besides])})"
    )


def _recipes(cells: pd.DataFrame) -> str:
    """A sentence where the trained cells of a model and task have different recipes."""
    found: dict[str, dict[str, None]] = {}
    for _, group in cells[cells["loss"] != BASE].groupby(["model", "task"], observed=True):
        recipes = list(group["recipe"])
        for name in dict.fromkeys(k for r in recipes for k in r if k not in WITHOUT_EFFECT):
            values = dict.fromkeys(str(recipe.get(name)) for recipe in recipes)
            if len(values) > 1:
                found[name] = {**found.get(name, {}), **values}
    texts = [f"{name} ({' or '.join(values)})" for name, values in found.items()]
    return f" The cells were trained with different {' and '.join(texts)}." * bool(texts)


def _software(run: Run, cells: pd.DataFrame) -> str:
    """A sentence where the cells were made with different versions or on different devices."""
    found = differences(run.current(str(address)) for address in cells["address"])
    texts = [f"{name} ({' or '.join(values)})" for name, values in found.items()]
    return f" The cells were made with different {' and '.join(texts)}." * bool(texts)


def _percent(value: float) -> str:
    """`45.5 %`; a share that one decimal would show as none has the decimals that it needs."""
    text = f"{value:.1f}"
    return f"{value:.1g} %" if value > 0 == float(text) else f"{text} %"


def named_seeds(cells: pd.DataFrame) -> str:
    """`seed 0` or `seeds 0, 1, 2`."""
    seeds = sorted(cells["seed"].unique())
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
