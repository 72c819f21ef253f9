"""An experiment: models x tasks x losses x seeds -> cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from ..errors import UserError
from ..models.cards import ModelCard, content_at_hand, local_path, model_card
from ..models.recipe import Count, checked_settings
from ..models.settings import Settings
from ..plugin_system.parameters import canonical, tuned_label
from ..plugin_system.registry import (
    load_engine,
    load_loss,
    load_plugin_file,
    load_task,
    require_known,
)
from ..scoring.decoding_rules import GREEDY, rules_of
from ..storage.addresses import folder_name
from ..storage.cell import BASE
from ..storage.strict_yaml import write_yaml
from .cell import Cell
from .compatibility import (
    INSTEAD,
    default_model,
    refusal,
    require_compilable,
    require_images,
)
from .tuning import Configuration, read_axes, tuning_grids


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """A list as a tuple; one value is a list of it."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _as_axes(value: Any) -> tuple[Any, ...]:
    """The same; `ce: learning_rate=1,2` without quotes, a mapping in YAML, as a text."""
    axes = []
    for item in _as_tuple(value):
        if isinstance(item, dict) and len(item) == 1:
            item = ": ".join(map(str, *item.items()))
        axes.append(item)
    return tuple(axes)


Name = Annotated[str, Field(pattern=r"\S")]
Names = Annotated[tuple[Name, ...], BeforeValidator(_as_tuple)]
Axes = Annotated[tuple[Name, ...], BeforeValidator(_as_axes)]
Decoders = Annotated[
    tuple[Literal["greedy", "mean", "median"], ...], BeforeValidator(_as_tuple)
]
RecipeSettings = Annotated[dict[str, Any], BeforeValidator(checked_settings)]
# NumPy takes no larger one.
Seed = Annotated[int, Field(ge=0, le=2**32 - 1, strict=False)]
Seeds = Annotated[tuple[Seed, ...], BeforeValidator(_as_tuple)]


@dataclass(frozen=True)
class Experiment(Settings):
    """What to run. Command-line flags and a YAML file that mean the same make equal objects.

    Without `models`, they are the built-in one that suits the tasks: see
    `smmd_bench.experiment.compatibility`. An `optional` part of a file is left out where its data
    or model cannot be had. Raises UserError for a value that its field cannot take, and in `cells`
    for a name that is unknown.
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
    recipe: RecipeSettings = field(default_factory=dict)
    plugins: Names = ()
    tune: Axes = ()
    tune_trials: Count | None = None
    decoders: Decoders = ("greedy",)
    optional: Annotated[bool, Field(exclude=True)] = False

    def __post_init__(self) -> None:
        # They come first: what follows loads plugins by name.
        for file in self.plugins:
            load_plugin_file(file)

        # What means the same is spelled the same, since the name of the run's folder follows
        # from it. A bare name is not loaded, which would import torch.
        losses = [
            canonical(load_loss(s)) if "[" in s else s.strip() for s in self.losses
        ]
        read = {
            "models": self.models or (default_model(self.tasks),),
            "tasks": map(_resolved, self.tasks),
            "losses": losses,
            "seeds": self.seeds,
        }
        # Asked for twice counts once; a frozen dataclass lets nothing else set its fields.
        for name, values in read.items():
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
        object.__setattr__(self, "decoders", (GREEDY, *rules_of(self.decoders)))

        # Its form alone: names are checked where the losses are loaded.
        read_axes(self.tune)
        if self.tune_trials is not None and not self.tune:
            raise UserError(
                "--tune-trials draws from the values of --tune: give these, too."
            )

    @cached_property
    def cells(self) -> list[Cell]:
        """The matrix, in the order of the tables: per model and task the base, then the losses."""
        # Names are checked before a model is fetched, and models before losses import torch.
        load_engine(self.engine)
        require_known("losses", self.losses)
        cards = [model_card(model) for model in self.models]
        losses = [canonical(load_loss(loss)) for loss in self.losses]
        cells: list[Cell] = []
        for card in cards:
            for spec in self.tasks:
                base = self._make_base(card, spec)
                rows = [base] if self.base else []
                rows += [
                    replace(base, loss=loss, seed=seed)
                    for loss in losses
                    for seed in self.seeds
                ]
                rows = self._with_tuned(rows)
                cells += rows

                # Trials select a setting on their own task; only rows of tables are transferred.
                tested = [cell for cell in rows if cell.trial is None]
                if self.transfers:
                    for test in getattr(base.task_plugin, "transfers", ()):
                        cells += [_transfer(cell, test) for cell in tested]

        cells = [*dict.fromkeys(cells)]
        _require_sound(cells)
        return each_once(cells)

    def _make_base(self, card: ModelCard, spec: str) -> Cell:
        """The untuned checkpoint on a task, from which the other cells of both are made."""
        preferred = canonical(load_engine(self.engine))
        # A model that the engine cannot run is decoded by another one, with a note.
        refused = preferred if refusal(preferred, card) is not None else None
        task = canonical(load_task(card.task_spec(spec)))
        recipe = card.recipe(task.partition("[")[0], self.recipe)
        require_images(task, card)
        require_compilable(task, recipe)
        return Cell(
            model=card.name,
            task=task,
            loss=BASE,
            seed=0,
            data_seed=self.data_seed,
            recipe=recipe,
            engine=canonical(load_engine(INSTEAD)) if refused else preferred,
            asked_engine=refused,
            decoders=rules_of(self.decoders),
        )

    def cells_without_card(self, model: str, spec: str) -> list[Cell]:
        """The trained cells of a model that may not be here, on a task, without what is tuned."""
        task = load_task(spec)
        recipe = content_at_hand(model).recipe_of(task.name).changed(self.recipe)
        return [
            Cell(
                model, canonical(task), loss, seed, self.data_seed, recipe, self.engine
            )
            for loss in self.losses
            for seed in self.seeds
        ]

    @cached_property
    def grids(self) -> dict[str, tuple[Configuration, ...]]:
        """The configurations that each loss is tuned over; empty: none is tuned."""
        if not self.tune:
            return {}
        losses = dict.fromkeys(canonical(load_loss(loss)) for loss in self.losses)
        # The data seed, which all cells share, draws the same places for every loss.
        return tuning_grids(self.tune, [*losses], self.tune_trials, self.data_seed)

    def _with_tuned(self, cells: list[Cell]) -> list[Cell]:
        """The cells of a model and task; after those of a tuned loss its trials and tuned ones."""
        ordered: list[Cell] = []
        for loss in dict.fromkeys(cell.loss for cell in cells):
            of_loss = [cell for cell in cells if cell.loss == loss]
            ordered += of_loss
            grid = self.grids.get(loss)
            if grid is None:
                continue

            label = tuned_label(loss)
            tuned = [replace(cell, loss=label, grid=grid) for cell in of_loss]
            # A tuned cell chooses among its trials, which therefore come first.
            for cell in tuned:
                ordered += cell.trials
            ordered += tuned
        return ordered

    @property
    def name(self) -> str:
        """A readable folder name that follows from the experiment alone."""
        tasks = (getattr(load_task(task), "label", task) for task in self.tasks)
        words = [*tasks, *(Path(m).name for m in self.models), *self.losses]
        return folder_name(words, self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        """What tells the experiment from others: all but its plugin files, as the parts of its
        cells follow from the plugins that they use."""
        return {**self.to_dict(), "plugins": []}

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain data: what the YAML file holds."""
        content: dict[str, Any] = TypeAdapter(Experiment).dump_python(self, mode="json")
        # Whole paths, so that the file means the same from another folder.
        models = []
        for model in self.models:
            place = local_path(model)
            models.append(str(place.resolve()) if place.is_dir() else model)
        return content | {"models": models}

    def to_yaml(self) -> str:
        """The YAML file that `smmd-bench run` takes."""
        return write_yaml(self.to_dict())


def _resolved(spec: str) -> str:
    """The spec with what its defaults mean here, so that it says whether the data are synthetic."""
    task = load_task(spec)
    resolved = task.resolved() if hasattr(task, "resolved") else task
    return spec if resolved == task else canonical(resolved)


def each_once(cells: Iterable[Cell]) -> list[Cell]:
    """Each cell once: a trial that is a row as well is the row, and of two losses that try one
    setting the first has it. What is asked for with several decoders has all of them."""
    # Cells that differ in their decoders alone are equal.
    decoders: dict[Cell, tuple[str, ...]] = {}
    for cell in cells:
        decoders[cell] = rules_of((*decoders.get(cell, ()), *cell.decoders))
    cells = []
    for cell, rules in decoders.items():
        # A cell stays itself where it can, because it remembers its parts.
        cells.append(cell if cell.decoders == rules else replace(cell, decoders=rules))

    rows = {cell for cell in cells if cell.trial is None}
    unique = []
    for cell in cells:
        row = cell if cell.trial is None else replace(cell, trial=None)
        if cell.trial is None or row not in rows:
            unique.append(cell)
            rows.add(row)
    return unique


def _transfer(cell: Cell, test: str) -> Cell:
    """The cell that tests what `cell` trains on another task; an untuned model needs no source."""
    task = canonical(load_task(test))
    return replace(cell, task=task, trained_on=None if cell.is_base else cell.task)


def _require_sound(cells: Iterable[Cell]) -> None:
    """Raise UserError where a batch is no whole number of micro-batches, or where two tasks would
    be rows of one table under the name of their test."""
    sources: dict[str, str] = {}
    for cell in cells:
        size = cell.recipe.batch_size
        micro = cell.recipe.micro_batch_size
        # Gradients are accumulated over a whole number of micro-batches.
        if size % micro:
            raise UserError(
                f"batch_size={size} is not a multiple of micro_batch_size={micro}: set one of them "
                "with --set."
            )

        source = cell.trained_on
        if source is None:
            continue
        first = sources.setdefault(cell.task, source)
        if first != source:
            raise UserError(
                f"{first} and {source} are both tested on {cell.task}: run them in two folders, or "
                "with --no-transfers."
            )
