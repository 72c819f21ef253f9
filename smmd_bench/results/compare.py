"""What differs: the cells that two runs share, or two losses of one run over their seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import load_task
from ..scoring.gain import gain_of, holm, smallest_difference
from ..scoring.measure import compare
from ..scoring.statistics import RESAMPLES
from ..storage.cell import BASE, StoredCell
from .opponents import WITHOUT_EFFECT, CellKey, cell_key

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Task
    from .frames import RunFrames

    Sides = tuple[tuple[RunFrames, dict[str, Any]], tuple[RunFrames, dict[str, Any]]]

KEY = ("model_label", "task", "loss", "seed")
COLUMNS = (
    "model", "task", "loss", "seed", "metric", "a", "b", "difference", "low", "high", "n", "p",
)  # fmt: skip
CONTRAST_COLUMNS = (
    "model", "task", "loss", "against", "metric", "seeds", "n", "difference", "low", "high", "p",
    "p_holm", "smallest",
)  # fmt: skip
LEVEL = 0.05


@dataclass(frozen=True)
class RunComparison:
    """Cells that two runs share, and what is different besides.

    `rows` has one row a cell and metric: the values of both runs, b - a with its 95 % interval, n
    and p. `unpaired` says why interval, n and p are missing where they are. `only_a` and `only_b`
    are labels of cells that one run alone has, `settings` sentences on what differs.
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
        made = [_made_with(run.current(cell["address"])) for run, cell in sides]
        for name in dict.fromkeys([*made[0], *made[1]]):
            if name in made[0] and name in made[1] and made[0][name] != made[1][name]:
                found[f"{name} is {made[0][name]} and {made[1][name]}"] = None
    return list(found)


def _label(key: tuple[Any, ...]) -> str:
    model, task, loss, seed = key
    return f"{model} {task} {loss}" + ("" if loss == "base" else f" seed {seed}")


def _made_with(cell: StoredCell) -> dict[str, str]:
    """Versions of libraries and of the training code, and the kind of device, by `torch in
    training`, `device in decoding` and so on; nothing is known of completions made elsewhere."""
    receipt = {} if cell.is_base or cell.home is None else cell.home.receipt or {}
    training = receipt.get("made_with")
    stages = {
        "training": {"processes": "1", "strategy": "ddp", **training} if training else {},
        "decoding": (cell.decoding or {}).get("made_with") or {},
    }
    return {f"{name} in {stage}": v for stage, known in stages.items() for name, v in known.items()}


def contrasts(
    run: RunFrames, losses: Sequence[str], metric: str | None = None, *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """The first of the losses minus each of the others: one row a model, task, loss and metric.

    Of the first metric of each task, or of `metric`; "all" for all of them. The columns are those
    of `CONTRAST_COLUMNS`: what `gain_of` says of the seeds that both losses have, p_holm over the
    other losses, and the smallest difference found 4 times in 5. Its `attrs["left_out"]` names the
    losses that share no seed with the first.
    """
    import pandas as pd

    first, *others = _checked(run, losses, metric)
    held = {cell_key(cell): cell for cell in run.measured}
    rows = []
    for other in others:
        for task, seeds in _paired_seeds(run, held, first, other, resamples):
            name = metric or task.metrics()[0].name
            wanted = seeds if metric == "all" else seeds[seeds["metric"] == name]
            same = ["model", "task", "metric"]
            for key, cells in wanted.groupby(same, observed=True):
                gain = gain_of(cells)
                row = dict(zip(same, key, strict=True)) | {"loss": first, "against": other}
                rows.append({**gain, **row})
    if not rows:
        raise UserError(
            f"{run.path} has no {metric or 'result'} of {first} and of another of these losses for "
            "the same seed: `smmd-bench report` says what it has."
        )
    found = pd.DataFrame(rows)
    families = found.groupby(["model", "task", "metric"])
    found["p_holm"] = families["p"].transform(holm)
    sizes = families["p"].transform("count").clip(lower=1)
    pairs = zip(rows, sizes, strict=True)
    found["smallest"] = [smallest_difference(row, LEVEL / size) for row, size in pairs]
    found.attrs["left_out"] = [other for other in others if other not in {*found["against"]}]
    return found[list(CONTRAST_COLUMNS)]


def _checked(run: RunFrames, losses: Sequence[str], metric: str | None) -> list[str]:
    """The losses, each once. Raises UserError for what the run does not have."""
    known, metrics = {*run.cells["loss"]}, {*run.metrics["metric"]}
    for loss in losses:
        if loss not in known:
            raise UserError(f"{run.path} has no loss '{loss}': {did_you_mean(loss, known)}")
    if metric is not None and metric not in ("all", *metrics):
        raise UserError(f"Unknown metric '{metric}': {did_you_mean(metric, sorted(metrics))}")
    if len(found := list(dict.fromkeys(losses))) < 2:
        raise UserError(f"--losses names {found[0]} alone: give another loss to compare it with.")
    return found


def _paired_seeds(
    run: RunFrames, held: Mapping[CellKey, Any], loss: str, other: str, resamples: int
) -> Iterator[tuple[Task, pd.DataFrame]]:
    """For each model and task, one row a seed and metric, as a run's comparisons have them."""
    import pandas as pd

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    budgets = {key.budget for key in held if key.loss == other}
    for key, mine in held.items():
        budget = key.budget if key.budget in budgets else max(budgets, default=0)
        wanted = key._replace(loss=other, budget=budget)
        if other == BASE:
            wanted = wanted._replace(trained_on=None, recipe="", seed=0)
        theirs = held.get(wanted)
        if key.loss != loss or theirs is None:
            continue
        task = load_task(str(mine["task"]))
        scores = [run.read("scores", None, [cell["address"]]) for cell in (mine, theirs)]
        name = {"model": mine["model"], "task": mine["task"], "seed": mine["seed"]}
        found = compare(task, *scores, resamples=resamples)["metrics"]
        groups.setdefault((str(mine["model"]), str(mine["task"])), []).extend(
            {**name, "metric": metric, "against": theirs["address"], **values}
            for metric, values in found.items()
            if values["difference"] is not None
        )
    for (_, task_name), rows in groups.items():
        yield load_task(task_name), pd.DataFrame(rows)
