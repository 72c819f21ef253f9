"""An experiment: models x tasks x losses x seeds -> cells."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import BeforeValidator, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from ..errors import UserError, did_you_mean
from ..models.cards import local_path, model_card
from ..models.recipe import Count, Recipe, checked_settings
from ..models.settings import Settings
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_engine, load_loss, load_task, require_known
from ..plugin_system.tuned_label import tuned_label
from ..scoring.decoding_rules import GREEDY, RULES, rules_of
from ..storage.addresses import folder_name
from ..storage.cell import BASE
from .cell import Cell
from .suitability import INSTEAD, default_model, refusal, require_images
from .tuning import Configuration, read_axis, require_effect, tuning_grids


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """A list as a tuple; one value is a list of it."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _as_axes(value: Any) -> tuple[Any, ...]:
    """The same; `ce: learning_rate=1,2` without quotes, a mapping in YAML, as a text."""
    return tuple(
        ": ".join(map(str, *item.items())) if isinstance(item, dict) and len(item) == 1 else item
        for item in _as_tuple(value)
    )


Name = Annotated[str, Field(pattern=r"\S")]
Names = Annotated[tuple[Name, ...], BeforeValidator(_as_tuple)]
Axes = Annotated[tuple[Name, ...], BeforeValidator(_as_axes)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]  # NumPy takes no larger one
Seeds = Annotated[tuple[Seed, ...], BeforeValidator(_as_tuple)]


@dataclass(frozen=True)
class Experiment(Settings):
    """What to run. Command-line flags and a YAML file that mean the same make equal objects.

    Without `models`, they are the built-in one that suits the tasks: see
    `smmd_bench.experiment.suitability`.
    Raises UserError for a value that its field cannot take; names are looked up in `cells`.
    """

    kind: ClassVar[str] = "experiment key"

    tasks: Annotated[Names, Field(min_length=1)]
    losses: Annotated[Names, Field(min_length=1)]
    models: Names = ()
    seeds: Annotated[Seeds, Field(min_length=1)] = (0,)
    data_seed: Seed = 0
    engine: Name = "vllm"
    base: bool = True
    transfers: bool = True
    recipe: Annotated[dict[str, Any], BeforeValidator(checked_settings)] = field(
        default_factory=dict
    )
    plugins: Names = ()
    tune: Axes = ()
    tune_trials: Count | None = None
    decoders: Names = (GREEDY,)

    repeated: ClassVar[tuple[str, ...]] = ()
    """What was given more than once, in whatever spelling, and counts once; an experiment's own."""

    def __post_init__(self) -> None:
        read = {
            "models": self.models or (default_model(self.tasks),),
            "tasks": tuple(_resolved(task) for task in self.tasks),
            "losses": tuple(_shortest(loss) for loss in self.losses),
            "seeds": self.seeds,
        }
        for name, values in read.items():
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
        counts = ((name, Counter(values)) for name, values in read.items())
        found = [f"{v} ({name})" for name, count in counts for v, n in count.items() if n > 1]
        object.__setattr__(self, "repeated", tuple(found))
        for decoder in self.decoders:
            if decoder not in (known := (GREEDY, *RULES)):
                raise UserError(f"There is no decoder '{decoder}': {did_you_mean(decoder, known)}")
        object.__setattr__(self, "decoders", (GREEDY, *rules_of(self.decoders)))
        for text in self.tune:
            read_axis(text)
        if self.tune_trials is not None and not self.tune:
            raise UserError("--tune-trials draws from the values of --tune: give these, too.")

    def require_known(self) -> None:
        """Raise UserError for an unknown task, loss or engine, without importing any."""
        require_known("tasks", self.tasks)
        require_known("losses", self.losses)
        require_known("engines", [self.engine])

    @cached_property
    def cells(self) -> list[Cell]:
        """The matrix, in the order of the tables: per model and task the base, then the losses."""
        cards = {model: model_card(model) for model in self.models}
        asked = canonical(load_engine(self.engine))
        losses = [canonical(load_loss(loss)) for loss in self.losses]
        found: dict[Cell, None] = {}
        for model, card in cards.items():
            refused = refusal(asked, card) is not None
            engine = canonical(load_engine(INSTEAD)) if refused else asked
            for spec in self.tasks:
                task = canonical(load_task(card.task_spec(spec)))
                require_images(task, card)
                recipe = card.recipe(task.partition("[")[0], self.recipe)
                require_effect(self.grids, recipe)
                rows = [(BASE, 0)] if self.base else []
                rows += [(loss, seed) for loss in losses for seed in self.seeds]
                cells = [Cell(model, task, *row, self.data_seed, recipe, engine) for row in rows]
                if refused:
                    cells = [dataclasses.replace(cell, asked_engine=asked) for cell in cells]
                if rules := rules_of(self.decoders):
                    cells = [dataclasses.replace(cell, decoders=rules) for cell in cells]
                cells = self._with_tuned(cells)
                for cell in cells:
                    _check_batches(cell.recipe)
                tests = getattr(load_task(task), "transfers", ()) if self.transfers else ()
                tested = [cell for cell in cells if cell.trial is None]
                found |= dict.fromkeys(cells)
                found |= {_transfer(cell, test): None for test in tests for cell in tested}
        _check_transfers(found)
        return each_once(found)

    @cached_property
    def grids(self) -> dict[str, tuple[Configuration, ...]]:
        """The configurations that each loss is tuned over; empty: none is tuned."""
        if not self.tune:
            return {}
        losses = dict.fromkeys(canonical(load_loss(loss)) for loss in self.losses)
        return tuning_grids(self.tune, [*losses], self.tune_trials, self.data_seed)

    def _with_tuned(self, cells: list[Cell]) -> list[Cell]:
        """The cells of a model and task; after those of each loss that is tuned, its trials and its
        tuned ones."""
        found: list[Cell] = []
        for loss in dict.fromkeys(cell.loss for cell in cells):
            mine = [cell for cell in cells if cell.loss == loss]
            grid, label = self.grids.get(loss, ()), tuned_label(loss)
            tuned = [dataclasses.replace(cell, loss=label, grid=grid) for cell in mine if grid]
            found += [*mine, *(trial for cell in tuned for trial in cell.trials), *tuned]
        return found

    @property
    def name(self) -> str:
        """A readable folder name that follows from the experiment alone."""
        words = [*self.tasks, *(Path(m).name for m in self.models), *self.losses]
        return folder_name(words, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain data: what the YAML file holds."""
        content: dict[str, Any] = TypeAdapter(Experiment).dump_python(self, mode="json")
        return {**content, "models": [_stable(model) for model in self.models]}

    def to_yaml(self) -> str:
        """The YAML file that `smmd-bench run` takes."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False)


def _resolved(spec: str) -> str:
    """The spec with what its defaults mean here, so that it says whether the data are synthetic."""
    try:
        task = load_task(spec)
    except UserError:
        return spec  # said in planning
    resolved = task.resolved() if hasattr(task, "resolved") else task
    return spec if resolved == task else canonical(resolved)


def _shortest(spec: str) -> str:
    """The spec without the parameters that are defaults: one loss, one spelling."""
    if "[" not in spec:  # losses are not imported before they are needed
        return spec.strip()
    try:
        return canonical(load_loss(spec))
    except UserError:
        return spec  # said in planning


def each_once(cells: Iterable[Cell]) -> list[Cell]:
    """Each cell once: a trial that is a row as well is the row, and of two losses that try one
    setting the first has it. What is asked for with several decoders has all of them."""
    rules: dict[Cell, tuple[str, ...]] = {}
    for cell in cells:
        rules[cell] = rules_of((*rules.get(cell, ()), *cell.decoders))
    cells = [  # the cells themselves where they can stay: they remember their parts
        cell if cell.decoders == found else dataclasses.replace(cell, decoders=found)
        for cell, found in rules.items()
    ]
    known = {cell for cell in cells if cell.trial is None}
    found = []
    for cell in cells:
        row = dataclasses.replace(cell, trial=None)
        if cell.trial is None or row not in known:
            found.append(cell)
            known.add(row)
    return found


def _check_batches(recipe: Recipe) -> None:
    """Raise UserError where a batch is no whole number of micro-batches."""
    if recipe.batch_size % recipe.micro_batch_size:
        raise UserError(
            f"batch_size={recipe.batch_size} is not a multiple of "
            f"micro_batch_size={recipe.micro_batch_size}: set one of them with --set."
        )


def _transfer(cell: Cell, test: str) -> Cell:
    """The cell that tests what `cell` trains on another task; an untuned model needs no source."""
    task = canonical(load_task(test))
    return dataclasses.replace(cell, task=task, trained_on=None if cell.is_base else cell.task)


def _check_transfers(cells: Iterable[Cell]) -> None:
    """Raise UserError where two tasks would be rows of one table under the name of their test."""
    trained_on: dict[str, str] = {}
    for cell in cells:
        first = trained_on.setdefault(cell.task, cell.trained_on or "") if cell.source else ""
        if cell.source is not None and first != cell.trained_on:
            raise UserError(
                f"{first} and {cell.trained_on} are both tested on {cell.task}: run them in two "
                "folders, or with --no-transfers."
            )


def _stable(model: str) -> str:
    folder = local_path(model)
    return str(folder.resolve()) if folder.is_dir() else model
