"""Two runs beside each other: the cells that both have, and how their metrics differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import load_task
from ..scoring.measure import compare
from ..scoring.statistics import RESAMPLES
from .made_with import differences
from .opponents import WITHOUT_EFFECT

if TYPE_CHECKING:
    import pandas as pd

    from .frames import RunFrames

    Sides = tuple[tuple[RunFrames, dict[str, Any]], tuple[RunFrames, dict[str, Any]]]

KEY = ("model_label", "task", "loss", "seed")
COLUMNS = (
    "model", "task", "loss", "seed", "metric", "a", "b", "difference", "low", "high", "n", "p",
)  # fmt: skip


@dataclass(frozen=True)
class RunComparison:
    """Cells that two runs share, and what is different besides.

    `rows` has one row a cell and metric: the value in the first run (a) and in the second (b),
    b - a with its 95 % interval, n examples, and p: McNemar's exact test of a share, else by the
    paired bootstrap. Where the test examples are not the same, or the task's plugin is
    not here, the interval, n and p are missing, and `unpaired` says why. `only_a` and `only_b` are
    labels of cells that one run alone has, `settings` sentences on what differs.
    """

    rows: pd.DataFrame
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    unpaired: list[str] = field(default_factory=list)


def compare_runs(
    a: RunFrames, b: RunFrames, metric: str | None = None, *, resamples: int = RESAMPLES
) -> RunComparison:
    """Compare the first metric of each task, or `metric`; "all" for all of them.

    Raises UserError where the runs share no measured cell, or none has the metric.
    """
    import pandas as pd

    left, right = _measured(a), _measured(b)
    shared: list[Sides] = [((a, left[key]), (b, right[key])) for key in left if key in right]
    if not shared:
        raise UserError(
            f"{a.path} and {b.path} share no measured cell of the same model, task, loss and seed: "
            "`smmd-bench report` on both says what each has."
        )
    unpaired: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    for sides in shared:
        found = _rows(sides, metric, resamples)
        rows += found
        unpaired |= {row.pop("why"): None for row in found if "why" in row}
    if not rows:
        known = sorted({*a.metrics["metric"], *b.metrics["metric"]})
        raise UserError(f"Unknown metric '{metric}': {did_you_mean(str(metric), known)}")
    return RunComparison(
        pd.DataFrame(rows, columns=list(COLUMNS)),
        [_label(key) for key in left if key not in right],
        [_label(key) for key in right if key not in left],
        _settings(shared),
        list(unpaired),
    )


def _measured(run: RunFrames) -> dict[tuple[Any, ...], dict[str, Any]]:
    cells = run.cells[run.cells["status"] == "done"].to_dict("records")
    return {
        tuple(cell[name] for name in KEY): {str(k): v for k, v in cell.items()} for cell in cells
    }


def _rows(sides: Sides, metric: str | None, resamples: int) -> list[dict[str, Any]]:
    left = sides[0][1]
    values = [
        run.metrics[run.metrics["address"] == cell["address"]].set_index("metric")["value"]
        for run, cell in sides
    ]
    names = [name for name in values[0].index if name in values[1].index]
    names = names[:1] if metric is None else [n for n in names if metric in ("all", n)]
    paired = _paired(sides, resamples) if names else None
    rows = []
    for name in names:
        row = {key.removesuffix("_label"): left[key] for key in KEY}
        row |= {"metric": name, "a": values[0][name], "b": values[1][name]}
        row["difference"] = row["b"] - row["a"]
        if isinstance(paired, str):
            row["why"] = paired
        elif paired is not None:
            test = paired["metrics"].get(name, {})
            row |= {part: test.get(part) for part in ("difference", "low", "high", "n", "p")}
        rows.append(row)
    return rows


def _paired(sides: Sides, resamples: int) -> dict[str, Any] | str:
    """The paired comparison, b - a, or why there is none."""
    name = str(sides[0][1]["task"])
    try:
        task = load_task(name)
    except UserError:
        return f"the plugin of {name} is not here: give its file with --plugin"
    columns = ["uid", "prompt", "target"]
    asked = [run.read("completions", columns, [cell["address"]])[columns] for run, cell in sides]
    if not asked[0].set_index("uid").sort_index().equals(asked[1].set_index("uid").sort_index()):
        return f"the two runs did not answer the same examples of {name}"
    scores = [run.read("scores", None, [cell["address"]]) for run, cell in sides]
    return compare(task, scores[1], scores[0], resamples=resamples)


def _settings(pairs: list[Sides]) -> list[str]:
    """What differs in recipes, versions and devices, one sentence each."""
    found: dict[str, None] = {}
    for sides in pairs:
        left, right = (cell["recipe"] for _, cell in sides)
        for name in dict.fromkeys([*left, *right]):
            if name not in WITHOUT_EFFECT and left.get(name) != right.get(name):
                task = sides[0][1]["task"]
                found[f"{task}: {name} is {left.get(name)} and {right.get(name)}"] = None
        grids = [run.described(cell["address"]).get("grid") for run, cell in sides]
        if grids[0] != grids[1]:
            found[f"{sides[0][1]['task']}: {sides[0][1]['loss']} had other settings to try"] = None
        software = differences([run.current(cell["address"]) for run, cell in sides])
        for name, values in software.items():
            found[f"{name} is {' and '.join(values)}"] = None
    return list(found)


def _label(key: tuple[Any, ...]) -> str:
    model, task, loss, seed = key
    return f"{model} {task} {loss}" + ("" if loss == "base" else f" seed {seed}")
