"""What differs: the cells that two runs share, or two losses of one run over their seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import load_task
from ..scoring.measure import compare
from ..scoring.statistics import RESAMPLES
from ..storage.cell import BASE, CellRecord, StoredCell
from .baselines import WITHOUT_EFFECT, cell_key
from .pairing import sum_up_families
from .tie_groups import tie_letters

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Metric
    from .frames import RunFrames

    Side = tuple[RunFrames, CellRecord]
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

    # By label, since the addresses of the same cell differ where its recipe does.
    sides_a = _read_measured(a)
    sides_b = _read_measured(b)
    shared = [label for label in sides_a if label in sides_b]
    if not shared:
        raise UserError(
            f"{a.path} and {b.path} share no measured cell of the same model, task, loss and seed: "
            "`smmd-bench report` on both says what each has."
        )

    rows: list[dict[str, Any]] = []
    differing: list[str] = []
    for label in shared:
        sides = (sides_a[label], sides_b[label])
        rows += _compare_cells(*sides, metric, resamples)
        differing += _describe_settings(*sides)
    if not rows:
        names = sorted({*a.metrics["metric"], *b.metrics["metric"]})
        raise UserError(
            f"Unknown metric '{metric}': {did_you_mean(str(metric), names)}"
        )

    # A setting in which many cells differ alike is told once, and so is a task.
    unpaired = dict.fromkeys(row["task"] for row in rows if not row["paired"])
    return RunComparison(
        rows=pd.DataFrame(rows, columns=list(COLUMNS)),
        only_a=[label for label in sides_a if label not in sides_b],
        only_b=[label for label in sides_b if label not in sides_a],
        settings=[*dict.fromkeys(differing)],
        unpaired=[
            f"the two runs did not answer the same examples of {task}"
            for task in unpaired
        ],
    )


def _read_measured(run: RunFrames) -> dict[str, Side]:
    """Read the measured cells of a run, by what another run calls the same cell."""
    measured: Any = run.cells.query("status == 'done'").to_dict("records")
    return {_label_cell(cell): (run, cell) for cell in measured}


def _label_cell(cell: dict[str, Any]) -> str:
    seed = "" if cell["loss"] == BASE else f" seed {cell['seed']}"
    return f"{cell['model_label']} {cell['task']} {cell['loss']}{seed}"


def _compare_cells(
    left: Side, right: Side, metric: str | None, resamples: int
) -> Iterator[dict[str, Any]]:
    """Compare a cell of both runs, a row a metric; without interval where their examples differ."""
    values_a = _read_values(left)
    values_b = _read_values(right)
    names = [name for name in values_a.index if name in values_b.index]
    if metric is None:
        names = names[:1]
    elif metric != "all":
        names = [name for name in names if name == metric]

    # Examples of the same id may differ, as where a seed has made others.
    is_paired = _read_examples(left).equals(_read_examples(right))
    tests = {}
    if names and is_paired:
        tests = _compare_scores(right, left, resamples, names)

    cell = left[1]
    # b - a, so that what is better in the second run is above 0.
    for name in names:
        yield {
            "difference": values_b[name] - values_a[name],
            **tests.get(name, {}),
            "model": cell["model_label"],
            "task": cell["task"],
            "loss": cell["loss"],
            "seed": cell["seed"],
            "metric": name,
            "paired": is_paired,
            "a": values_a[name],
            "b": values_b[name],
        }


def _read_values(side: Side) -> pd.Series[float]:
    run, cell = side
    of_cell = run.metrics[run.metrics["address"] == cell["address"]]
    values: pd.Series[float] = of_cell.set_index("metric")["value"]
    return values


def _read_examples(side: Side) -> pd.DataFrame:
    run, cell = side
    # Only what an example asks matters, not where it stands in the split.
    columns = ["uid", "prompt", "target"]
    rows = run.read("completions", columns, [cell["address"]])
    # A chat template gets prompts without blanks at their ends.
    rows["prompt"] = rows["prompt"].str.strip()
    return rows[columns].set_index("uid").sort_index()


def _compare_scores(
    ours: Side, other: Side, resamples: int, of: list[str]
) -> dict[str, Any]:
    """Compare the scores of a cell with those of another one, by metric of these names."""
    scores = []
    for run, cell in (ours, other):
        scores.append(run.read("scores", None, [cell["address"]]))

    task = load_task(ours[1]["task"])
    metrics = compare(task, *scores, resamples=resamples, of=of)["metrics"]
    return {k: v for k, v in metrics.items() if v["difference"] is not None}


def _describe_settings(left: Side, right: Side) -> Iterator[str]:
    """Yield a sentence for each setting that both cells tell, and tell differently."""
    settings = _read_settings(*right)
    for name, value in _read_settings(*left).items():
        if name in settings and settings[name] != value:
            yield f"{name} is {value} and {settings[name]}"


def _read_settings(run: RunFrames, cell: CellRecord) -> dict[str, Any]:
    """Read what a result may depend on besides the loss, as far as it is known."""
    task = cell["task"]
    settings = {}
    for name, value in cell["recipe"].items():
        if name not in WITHOUT_EFFECT:
            settings[f"{task}: {name}"] = value
    grid = run.described[cell["address"]].get("grid") or ()
    tried = [point["text"] for point in grid]
    settings[f"{task}: what was tried of {cell['loss']}"] = tried

    stored = run.current(cell["address"])
    for name, value in _read_training(stored).items():
        settings[f"{name} in training"] = value
    decoding = (stored.decoding or {}).get("made_with") or {}
    for name, value in decoding.items():
        settings[f"{name} in decoding"] = value
    return settings


def _read_training(cell: StoredCell) -> dict[str, str]:
    if cell.is_base or cell.home is None:
        return {}
    training = (cell.home.receipt or {}).get("made_with")
    # A receipt names processes, and how they share weights, only where these are others.
    return {"processes": "1", "strategy": "ddp", **training} if training else {}


def contrasts(
    run: RunFrames,
    losses: Sequence[str],
    metric: str | None = None,
    *,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Subtract each of the other losses from the first: one row a model, task, loss and metric.

    Of the first metric of each task, or of `metric`; "all" for all of them. The columns are those
    of `CONTRAST_COLUMNS`: what `gain_of` says of the seeds that both losses have, p_holm over the
    other losses, and the smallest difference found 4 times in 5. Its `attrs["left_out"]` names the
    losses that share no seed with the first.
    """
    import pandas as pd

    _require_comparable(run, losses, metric)
    first, *rivals = dict.fromkeys(losses)
    rows = []
    for other in rivals:
        for ours, theirs in _pair_cells(run, first, other):
            names = [wanted.name for wanted in _select_metrics(ours["task"], metric)]
            differences = _compare_scores((run, ours), (run, theirs), resamples, names)
            labels = {key: ours[key] for key in ("model", "task", "loss", "seed")}
            labels["against"] = other
            # A metric without a value in one of both has no difference.
            for name in names:
                if name in differences:
                    rows.append({**labels, "metric": name, **differences[name]})

    if not rows:
        raise UserError(
            f"{run.path} has no {metric or 'result'} of {first} and of another of these losses for "
            "the same seed: see `smmd-bench show`; base stands after a loss, as in ce,base."
        )

    # A user who compares with several losses asks one question of each metric.
    key = ["model", "task", "loss", "against", "metric"]
    table = sum_up_families(pd.DataFrame(rows), key, without="against")
    table.attrs["left_out"] = [
        other for other in rivals if other not in {*table["against"]}
    ]
    return table[list(CONTRAST_COLUMNS)]


def tied_losses(
    run: RunFrames, losses: Sequence[str], metric: str | None = None
) -> pd.DataFrame:
    """Letter these losses (`tie_letters`) by the metrics that `contrasts` compares."""
    cells = run.cells[run.cells["loss"].isin([*losses])]
    return tie_letters(run.only(cells), lambda task: _select_metrics(task, metric))


def _select_metrics(task: str, metric: str | None) -> list[Metric]:
    metrics = load_task(task).metrics()
    if metric is None:  # a task lists its main metric first
        return [*metrics[:1]]
    return [candidate for candidate in metrics if metric in ("all", candidate.name)]


def _require_comparable(
    run: RunFrames, losses: Sequence[str], metric: str | None
) -> None:
    losses_of_run = {*run.cells["loss"]}
    for loss in losses:
        if loss not in losses_of_run:
            hint = did_you_mean(loss, losses_of_run)
            raise UserError(f"{run.path} has no loss '{loss}': {hint}")
    metrics = sorted({*run.metrics["metric"]})
    if metric not in (None, "all", *metrics):
        raise UserError(
            f"Unknown metric '{metric}': {did_you_mean(str(metric), metrics)}"
        )
    if len({*losses}) < 2:
        raise UserError(
            f"compare finds {', '.join({*losses}) or 'no loss'} alone: give --losses two losses of "
            f"{run.path}, or give a second run."
        )


def _pair_cells(
    run: RunFrames, loss: str, other: str
) -> Iterator[tuple[CellRecord, CellRecord]]:
    """Pair the measured cells of a loss with those of the other of the same recipe and seed."""
    by_key = {cell_key(cell): cell for cell in run.measured}
    budgets = {key.budget for key in by_key if key.loss == other}
    for key, cell in by_key.items():
        if key.loss != loss:
            continue
        # Of another loss that was not tuned over as many trials, the one with most counts.
        budget = key.budget if key.budget in budgets else max(budgets, default=0)
        opponent = key._replace(loss=other, budget=budget)
        # The base has no training: every seed and recipe has the same.
        if other == BASE:
            opponent = opponent._replace(trained_on=None, recipe="", seed=0)
        if opponent in by_key:
            yield cell, by_key[opponent]
