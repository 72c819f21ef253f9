"""A cell of an experiment, and what each of its stages follows from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..contracts import EngineSettings, Loss, Modality, Split, Task
from ..models.cards import ModelCard, card_at
from ..models.recipe import TRAINING_VERSION, Recipe, training_settings
from ..plugin_system.checked_task import (
    label_of,
    reads_files,
    take_examples,
    take_identity,
)
from ..plugin_system.parameters import parameters_of, spell
from ..plugin_system.plugin_source import with_source
from ..plugin_system.registry import engine_identity, load_loss, load_task
from ..scoring.deciding import selecting_metrics
from ..scoring.measure import measure_identity
from ..storage.addresses import address
from ..storage.cell import BASE, StoredCell
from .compatibility import refusal
from .tuning import Configuration

PROBE_VERSION = 2
"""Of `smmd_bench.decoding.probe`. Raise it when probes of the same weights come out differently."""
SELECTION_VERSION = 2
"""The same of `smmd_bench.decoding.selection`."""
BEAMS_VERSION = 1
"""The same of `smmd_bench.decoding.beams`."""


@dataclass(frozen=True)
class Cell:
    """One (model, task, loss, seed) with its recipe. Specs are canonical.

    A transfer cell tests what another cell, its `source`, has trained: `trained_on` is the task of
    that one, and `task` the test. It has no train stage and no validation of its own. `engine` is
    what decodes; `asked_engine` another one that was asked for and refuses the model.

    A tuned cell (`smmd[tuned]`) tests the best of its `trials`, one a configuration of its `grid`,
    and trains nothing. A trial, whose `trial` says what it changes of the recipe, is trained and
    validated and never tested.

    `decoders` are the decoding rules that answer beside greedy decoding. `model_path` is the folder
    that `model` named where the cell was asked for, if that was another one than this.
    """

    model: str
    task: str
    loss: str
    seed: int
    data_seed: int
    recipe: Recipe
    engine: str
    trained_on: str | None = None
    asked_engine: str | None = None
    grid: tuple[Configuration, ...] = ()
    trial: str | None = None
    decoders: tuple[str, ...] = field(default=(), compare=False)
    model_path: str | None = field(default=None, compare=False)

    def stored(self, run: Path) -> StoredCell:
        """The cell's folders in a run, as they are now."""
        source = None if self.source is None else self.source.stored(run)
        trials = tuple(trial.stored(run) for trial in self.trials)
        return StoredCell(run, self.address, self.parts, self.is_base, source, trials)

    @property
    def label(self) -> str:
        """What people read in progress lines and summaries."""
        return f"{self.model} {self.task_label} {self.short_label}"

    @property
    def short_label(self) -> str:
        """The same without model and task."""
        changed = f" with {self.trial}" if self.trial else ""
        trial = "" if self.trial is None else f"{changed} (trial)"
        return self.loss if self.is_base else f"{self.loss} seed {self.seed}{trial}"

    @property
    def is_base(self) -> bool:
        """Whether this is the untuned checkpoint."""
        return self.loss == BASE

    @cached_property
    def source(self) -> Cell | None:
        """The cell whose weights a transfer cell tests; None: its own."""
        if self.trained_on is None:
            return None
        # All else is equal, so that the source is a cell of the same experiment.
        return dataclasses.replace(self, task=self.trained_on, trained_on=None)

    @property
    def owner(self) -> Cell:
        """The cell that decides which weights this one tests: its source, or itself."""
        return self.source or self

    @cached_property
    def trials(self) -> tuple[Cell, ...]:
        """The trials of a tuned cell, in the order of its grid."""
        if self.source is not None:
            return ()
        # A trial is validated greedily, whatever the tuned cell is tested with.
        plain = dataclasses.replace(self, grid=(), decoders=())
        trials = []
        for point in self.grid:
            recipe = self.recipe.changed(dict(point.settings))
            settings = [f"{key}={spell(value)}" for key, value in point.settings]
            trial = ",".join(settings)
            trials.append(
                dataclasses.replace(plain, loss=point.loss, recipe=recipe, trial=trial)
            )
        return tuple(trials)

    @cached_property
    def card(self) -> ModelCard:
        """The model's card."""
        return card_at(self.model, self.model_path)

    @cached_property
    def task_plugin(self) -> Task:
        """The task."""
        return load_task(self.task)

    @cached_property
    def loss_plugin(self) -> Loss:
        """The loss (not for the base); of a tuned cell that of its first trial."""
        return load_loss(self.grid[0].loss if self.grid else self.loss)

    @property
    def engine_note(self) -> str | None:
        """Why another engine decodes than was asked for; None: it does not."""
        if self.asked_engine is None:
            return None
        reason = refusal(self.asked_engine, self.card)
        engines = f"{self.engine}, not {self.asked_engine}"
        return f"{self.card.label} is decoded with {engines}: {reason}."

    @property
    def task_label(self) -> str:
        """What tables call the task."""
        return label_of(self.task_plugin)

    def size(self, split: Split) -> int:
        """How many examples of a split the cell uses."""
        task = self.task_plugin
        all_examples = int(task.paper_sizes[split])
        wanted = getattr(self.recipe, f"{split}_examples")
        if wanted is None:
            return all_examples
        # There are no more examples than that.
        is_finite = getattr(task, "finite", reads_files(task))
        return min(int(wanted), all_examples) if is_finite else int(wanted)

    @property
    def splits(self) -> tuple[Split, ...]:
        """The splits that the cell uses."""
        if self.trial is not None:
            return ("train", "validation")
        if self.source is not None or self.is_base or self.grid:
            return ("test",)
        return ("train", "validation", "test")

    def examples_there(self, split: Split) -> int:
        """How many examples the cell has of a split: fewer than `size` in a smaller copy."""
        size = self.size(split)
        count = self.rows_there(split, size)
        return size if count is None else min(size, count)

    def rows_there(self, split: Split, limit: int | None = None) -> int | None:
        """How many examples a copy of the data has, as an identity's `kept` says, or the rows of
        the task's `sources`, of which `limit` are counted; None: they are made, without end."""
        identity = take_identity(self.task_plugin, split, self.data_seed)
        # A copy may hold rows that the task leaves out.
        if "kept" in identity:
            return int(identity["kept"])
        if reads_files(self.task_plugin):
            return len(take_examples(self.task_plugin, split, self.data_seed, limit))
        return None

    @cached_property
    def address(self) -> str:
        """What tells the cell from others, whatever it is tested on and with."""
        if self.source is not None:
            return address({"source": self.source.address, "test": self.task})
        # The winner follows from the trials, and is not known in a plan.
        if self.grid:
            return address({"trials": [trial.address for trial in self.trials]})
        return self.parts["train"]

    @cached_property
    def parts(self) -> dict[str, str]:
        """By stage, a digest of what is new in it: see `smmd_bench.storage.cell`."""
        task = self.task_plugin
        trains = self.source is None and not self.grid
        greedy = {
            "model": self.card.identity,  # of an adapter, the digest of the weights lacks it
            "max_new_tokens": task.max_new_tokens,
            "dtype": self.recipe.dtype,
            "chat_template": self.recipe.chat_template,
            "engine": engine_identity(self.engine),
            **self._pixels,
        }

        content: dict[str, Mapping[str, Any]] = {}
        if trains:
            content["train"] = self._training
        # The base has one state of its weights: there is no epoch to choose.
        if trains and not self.is_base:
            content["validate"] = {"data": self._data("validation"), **greedy}
        if self.source is None and not self.is_base:
            metrics = selecting_metrics(task, self.recipe.select_by)
            by = [SELECTION_VERSION, *(metric.name for metric in metrics)]
            content["select"] = {**measure_identity(task), "by": by}

        # Only rows of tables see the test split.
        if self.trial is None:
            test = {"data": self._data("test"), **greedy}
            recipe = self.recipe
            probes = [PROBE_VERSION, recipe.probe_examples, recipe.probe_vectors]
            decode = {"probes": probes, "numbers": recipe.numeric_rule, **test}
            # Completions of a chat template once held the blanks that it does not get.
            if recipe.chat_template:
                decode["prompt"] = "user's turn"
            content["decode"] = decode

            # Beams in a folder of their own: with them or without, completions are the same.
            if self.decoders:
                content["beams"] = {"code": BEAMS_VERSION, **test}
            content["measure"] = measure_identity(task, self.decoders)
        return {stage: address(made_from) for stage, made_from in content.items()}

    @property
    def _training(self) -> dict[str, Any]:
        """What the weights follow from; of the base, what its canary does."""
        made_from = {
            "model": self.card.identity,
            "code": TRAINING_VERSION,
            **self._pixels,
        }
        if self.is_base:
            # A task in files is known by its data, wherever they lie.
            task = self.task if self.task_label == self.task else self._data("test")
            return made_from | {"task": task, "dtype": self.recipe.dtype}

        # What scores alone, such as the size of the test split, is no part of a training.
        settings = training_settings(self.recipe)
        del settings["min_pixels"], settings["max_pixels"]  # `_pixels` has them
        return {
            **made_from,
            "data": self._data("train"),
            "loss": _plugin_identity(self.loss_plugin),
            "recipe": settings,
            "seed": self.seed,
        }

    @property
    def reads_images(self) -> bool:
        """Whether the task's prompts hold images."""
        return self.task_plugin.modality is Modality.VISION

    @property
    def engine_settings(self) -> EngineSettings:
        """How the engine must be started for this cell."""
        recipe, task = self.recipe, self.task_plugin
        settings = EngineSettings(
            dtype=recipe.dtype,
            max_model_length=recipe.max_length + task.max_new_tokens,
            # A tuned cell may test any of its trials, of which the rank can be tuned.
            max_lora_rank=max(
                cell.recipe.lora_rank for cell in (self, *self.owner.trials)
            ),
            adapters=recipe.method == "lora",
            images=0,
        )
        if not self.reads_images:
            return settings
        return dataclasses.replace(
            settings,
            min_pixels=recipe.min_pixels,
            max_pixels=recipe.max_pixels,
            images=getattr(task, "most_images", 1),
        )

    @property
    def _pixels(self) -> dict[str, Any]:
        """The limits on an image's pixels as a part of addresses; text has none."""
        # The addresses of text stay those of before there were pictures.
        limits = {"pixels": [self.recipe.min_pixels, self.recipe.max_pixels]}
        return limits if self.reads_images else {}

    def _data(self, split: Split) -> dict[str, Any]:
        identity = take_identity(self.task_plugin, split, self.data_seed)
        return with_source(
            {"identity": identity, "count": self.size(split)}, self.task_plugin
        )


def _plugin_identity(plugin: Any) -> dict[str, Any]:
    values = {}
    for name, parameter in parameters_of(type(plugin)).items():
        value = getattr(plugin, parameter.field)
        # Results of before there was this parameter are those of its default.
        if not parameter.added_later or value != parameter.default:
            values[name] = value
    content = {"name": plugin.name, "version": plugin.version, "parameters": values}
    return with_source(content, plugin)
