"""What differs: the cells that two runs share, or two losses of one run over their seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import load_task
from ..scoring.gain import LEVEL, gain_of, holm, smallest_difference
from ..scoring.measure import compare
from ..scoring.statistics import RESAMPLES
from ..storage.cell import BASE
from .opponents import WITHOUT_EFFECT, cell_key
from .ties import tie_letters

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Metric
    from .frames import RunFrames

    Side = tuple[RunFrames, dict[str, Any]]
    """A run, and what its manifest says of a cell."""

COLUMNS = (
    "model", "task", "loss", "seed", "metric", "a", "b", "difference", "low", "high", "n", "p",
)  # fmt: skip
CONTRAST_COLUMNS = (
    "model", "task", "loss", "against", "metric", "seeds", "n", "difference", "low", "high", "p",
    "p_holm", "smallest",
)  # fmt: skip


@dataclass(frozen=True)
class RunComparison:
    """`rows`, one a shared cell and metric: both values, b - a with its 95 % interval, n and p;
    `unpaired` says why these are missing; `only_a` and `only_b` are labels of cells that one run
    alone has, `settings` sentences on what differs besides."""

    rows: pd.DataFrame
    only_a: list[str]
    only_b: list[str]
    settings: list[str]
    unpaired: list[str]


def compare_runs(
    a: RunFrames, b: RunFrames, metric: str | None = None, *, resamples: int = RESAMPLES
) -> RunComparison:
    """Compare the first metric of each task, or `metric`; "all" for all of them.

    Raises UserError where the runs share no measured cell, or none has the metric.
    """
    import pandas as pd

    done: Any = [(run, run.cells.query("status == 'done'").to_dict("records")) for run in (a, b)]
    left, right = ({_label(cell): (run, cell) for cell in cells} for run, cells in done)
    shared = [(left[label], right[label]) for label in left if label in right]
    if not shared:
        raise UserError(
            f"{a.path} and {b.path} share no measured cell of the same model, task, loss and seed: "
            "`smmd-bench report` on both says what each has."
        )
    rows = [row for sides in shared for row in _rows(*sides, metric, resamples)]
    if not rows:
        known = sorted({*a.metrics["metric"], *b.metrics["metric"]})
        raise UserError(f"Unknown metric '{metric}': {did_you_mean(str(metric), known)}")
    settings: dict[str, None] = {}
    for sides in shared:
        one, other = (_circumstances(*side) for side in sides)
        differ = (name for name in one if name in other and one[name] != other[name])
        settings |= {f"{name} is {one[name]} and {other[name]}": None for name in differ}
    unpaired = dict.fromkeys(row["task"] for row in rows if not row["paired"])
    return RunComparison(
        pd.DataFrame(rows, columns=list(COLUMNS)),
        [label for label in left if label not in right],
        [label for label in right if label not in left],
        list(settings),
        [f"the two runs did not answer the same examples of {task}" for task in unpaired],
    )


def _label(cell: dict[str, Any]) -> str:
    seed = "" if cell["loss"] == BASE else f" seed {cell['seed']}"
    return f"{cell['model_label']} {cell['task']} {cell['loss']}{seed}"


def _rows(left: Side, right: Side, metric: str | None, resamples: int) -> Iterator[dict[str, Any]]:
    """One row a metric of a cell of both runs; without interval where they have other examples."""
    values = [
        run.metrics[run.metrics["address"] == cell["address"]].set_index("metric")["value"]
        for run, cell in (left, right)
    ]
    names = [name for name in values[0].index if name in values[1].index]
    names = names[:1] if metric is None else [n for n in names if metric in ("all", n)]
    columns = ["uid", "prompt", "target"]
    mine, other = (
        run.read("completions", columns, [cell["address"]])[columns].set_index("uid").sort_index()
        for run, cell in (left, right)
    )
    for answers in (mine, other):  # a chat template gets prompts without blanks at their ends
        answers["prompt"] = answers["prompt"].str.strip()
    paired = mine.equals(other)
    tests = _differences(right, left, resamples, names) if names and paired else {}
    for name in names:
        yield {
            "difference": values[1][name] - values[0][name],
            **tests.get(name, {}),
            **{key: left[1][key] for key in ("task", "loss", "seed")},
            "model": left[1]["model_label"],
            "metric": name,
            "paired": paired,
            "a": values[0][name],
            "b": values[1][name],
        }


def _differences(mine: Side, other: Side, resamples: int, of: list[str]) -> dict[str, Any]:
    """How the scores of a cell differ from those of another one, by metric of these names."""
    scores = [run.read("scores", None, [cell["address"]]) for run, cell in (mine, other)]
    found = compare(load_task(mine[1]["task"]), *scores, resamples=resamples, of=of)
    return {k: v for k, v in found["metrics"].items() if v["difference"] is not None}


def _circumstances(run: RunFrames, cell: dict[str, Any]) -> dict[str, Any]:
    """What a result may depend on besides the loss, as far as it is known."""
    now, task = run.current(cell["address"]), cell["task"]
    grid = [point["text"] for point in run.described[cell["address"]].get("grid") or ()]
    receipt = {} if now.is_base or now.home is None else now.home.receipt or {}
    training, decoding = receipt.get("made_with"), (now.decoding or {}).get("made_with") or {}
    training = {"processes": "1", "strategy": "ddp", **training} if training else {}
    return {
        **{f"{task}: {k}": v for k, v in cell["recipe"].items() if k not in WITHOUT_EFFECT},
        f"{task}: what was tried of {cell['loss']}": grid,
        **{f"{name} in training": value for name, value in training.items()},
        **{f"{name} in decoding": value for name, value in decoding.items()},
    }


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

    _require_known(run, losses, metric)
    first, *others = dict.fromkeys(losses)
    rows = []
    for other in others:
        for mine, theirs in _pairs(run, first, other):
            name = {k: mine[k] for k in ("model", "task", "loss", "seed")} | {"against": other}
            wanted = [one.name for one in _wanted(mine["task"], metric)]
            found = _differences((run, mine), (run, theirs), resamples, wanted)
            rows += [{**name, "metric": key, **found[key]} for key in wanted if key in found]
    if not rows:
        raise UserError(
            f"{run.path} has no {metric or 'result'} of {first} and of another of these losses for "
            "the same seed: see `smmd-bench show`; base stands after a loss, as in ce,base."
        )
    same = ["model", "task", "loss", "against", "metric"]
    groups = pd.DataFrame(rows).groupby(same, sort=False)
    gains = [{**dict(zip(same, key, strict=True)), **gain_of(cells)} for key, cells in groups]
    table = pd.DataFrame(gains)
    family = table.groupby(["model", "task", "metric"])["p"]
    table["p_holm"] = family.transform(holm)
    sizes = zip(gains, family.transform("count").clip(lower=1), strict=True)
    table["smallest"] = [smallest_difference(gain, LEVEL / size) for gain, size in sizes]
    table.attrs["left_out"] = [other for other in others if other not in {*table["against"]}]
    return table[list(CONTRAST_COLUMNS)]


def tied_losses(run: RunFrames, losses: Sequence[str], metric: str | None = None) -> pd.DataFrame:
    """The `tie_letters` of these losses, by the metrics that `contrasts` compares."""
    cells = run.cells[run.cells["loss"].isin([*losses])]
    return tie_letters(run.only(cells), lambda task: _wanted(task, metric))


def _wanted(task: str, metric: str | None) -> list[Metric]:
    every = load_task(task).metrics()
    return [m for m in every if metric in ("all", m.name)] if metric else [*every[:1]]


def _require_known(run: RunFrames, losses: Sequence[str], metric: str | None) -> None:
    metrics = sorted({*run.metrics["metric"]})
    for loss in losses:
        if loss not in (known := {*run.cells["loss"]}):
            raise UserError(f"{run.path} has no loss '{loss}': {did_you_mean(loss, known)}")
    if metric not in (None, "all", *metrics):
        raise UserError(f"Unknown metric '{metric}': {did_you_mean(str(metric), metrics)}")
    if len({*losses}) < 2:
        raise UserError(f"--losses names {losses[0]} alone: give another loss to compare it with.")


def _pairs(
    run: RunFrames, loss: str, other: str
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The measured cells of a loss, each with that of the other of the same recipe and seed."""
    held = {cell_key(cell): cell for cell in run.measured}
    budgets = {key.budget for key in held if key.loss == other}
    for key, mine in held.items():
        budget = key.budget if key.budget in budgets else max(budgets, default=0)
        wanted = key._replace(loss=other, budget=budget)
        if other == BASE:
            wanted = wanted._replace(trained_on=None, recipe="", seed=0)
        if key.loss == loss and wanted in held:
            yield mine, held[wanted]
