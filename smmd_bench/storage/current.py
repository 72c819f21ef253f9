"""Which files of a cell are current: the one place that decides.

Every file carries a stamp: a digest of its stage's address and of what it was made from.

    train.json            the train address; it holds a digest of every epoch's weights
    train_log.parquet     the train address, the weights of every epoch
    validation.parquet    the validate address, the weights of every epoch
    selection.json        the select address, the stamp of the validation completions
    choice.json           of a tuned cell: the select address, the selections of all its trials
    checkpoint/           the weights of the selected epoch (in its canary.json)
    completions.parquet,  the decode address, the selected epoch, its weights
    probes.parquet,
    decode.json
    beams.parquet         the beams address, the selected epoch, its weights
    scores.parquet,       the measure address, the stamps of completions and beams
    metrics.json
    comparison.json       the stamps of the metrics of both cells; noise.json likewise
    FAILED.json           the measure address, which follows from all others

A file with another stamp counts as absent, for what writes a run as for what reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from .addresses import address, require_inside
from .files import parquet_address, read_own_json
from .own_files import Weights, keep_whole, read_receipt, read_weights

CellFile = Literal["completions", "scores", "probes", "beams", "train_log"]
ComparisonFile = Literal["comparison", "noise"]
"""Of a cell: how it differs from its opponent, and cross-entropy from that of another seed."""
BASE = "base"
"""The loss of a cell that trains nothing, and the weights that it is tested with."""


@dataclass(frozen=True)
class CurrentCell:
    """The files of a cell as they are on disk, as far as they are current.

    Files are read when they are first asked for and never again: after a change, make a new one.

    folder: RUN/cells/ADDRESS. addresses: those of the cell's stages; completions made elsewhere
    have neither `validate` nor `select`. source: the cell whose weights a test of transfer tests.
    trials: of a tuned cell, which tests the weights of the chosen one, and has no others.
    """

    folder: Path
    addresses: Mapping[str, str]
    is_base: bool
    source: CurrentCell | None = None
    trials: tuple[CurrentCell, ...] = ()

    @property
    def home(self) -> CurrentCell | None:
        """The cell whose folder has the weights to test; None: no trial is chosen."""
        if self.source is not None:
            return self.source.home
        return self.chosen if self.trials else self

    @cached_property
    def choice_stamp(self) -> str | None:
        """The stamp that the choice among the trials carries; None: not all of them have a
        selection."""
        found = [(trial.folder.name, trial.selection_stamp, trial.tested) for trial in self.trials]
        if not found or any(tested is None for _, _, tested in found):
            return None
        return address({"select": self.addresses["select"], "trials": found})

    @cached_property
    def choice(self) -> dict[str, Any] | None:
        """What choice.json says: which trial is tested, and how each of them validated."""
        return None if self.choice_stamp is None else self._json("choice", self.choice_stamp)

    @property
    def chosen(self) -> CurrentCell | None:
        """The trial that is tested."""
        name = None if self.choice is None else self.choice["chosen"]
        return next((trial for trial in self.trials if trial.folder.name == name), None)

    @cached_property
    def receipt(self) -> dict[str, Any] | None:
        """What training left in train.json, without the canaries."""
        if self.trials:
            return self.chosen.receipt if self.chosen is not None else None
        found = read_receipt(self.folder / "train.json")
        return found if found and found.get("address") == self.addresses["train"] else None

    @property
    def weights(self) -> dict[int, str]:
        """The digest of every epoch's weights."""
        epochs = (self.receipt or {}).get("epochs", ())
        return {int(epoch["epoch"]): str(epoch["weights"]) for epoch in epochs}

    @cached_property
    def validation_stamp(self) -> str:
        """The stamp that completions of the validation split carry."""
        weights = sorted(self.weights.items())
        return address({"validate": self.addresses["validate"], "weights": weights})

    @property
    def selection_stamp(self) -> str:
        """The stamp that the selection of an epoch carries."""
        return address({"select": self.addresses["select"], "validation": self.validation_stamp})

    @property
    def has_validation(self) -> bool:
        """Whether the validation split is decoded with the weights of every epoch."""
        return parquet_address(self.folder / "validation.parquet") == self.validation_stamp

    @cached_property
    def selection(self) -> dict[str, Any] | None:
        """What selection.json says: which epoch is tested."""
        if self.trials:
            return self.chosen.selection if self.chosen is not None else None
        made = self.receipt is not None and self._made_here
        return self._json("selection", self.selection_stamp) if made else None

    @cached_property
    def tested(self) -> Weights | None:
        """The weights to test; None: they are not trained, or not selected yet."""
        if self.source is not None:
            same = self.source.addresses.get("select") == self.addresses.get("select")
            return self.source.tested if same else None
        if self.trials:
            return self.chosen.tested if self.chosen is not None else None
        if not self._made_here:
            return Weights(0, "")
        if self.receipt is None:
            return None
        if self.is_base:
            return Weights(0, BASE)
        if self.selection is None:
            return None
        epoch = int(self.selection["best_epoch"])
        return Weights(epoch, self.weights[epoch]) if epoch in self.weights else None

    @property
    def checkpoint(self) -> Path | None:
        """The folder with the selected weights; None: they are not there, or no longer."""
        if self.trials:
            return self.chosen.checkpoint if self.chosen is not None else None
        return self.folder / "checkpoint" if self._holds("checkpoint", self.tested) else None

    def has_epoch(self, epoch: int) -> bool:
        """Whether the weights of an epoch are kept, as this cell's training left them."""
        return self._holds(f"epochs/{epoch}", Weights(epoch, self.weights[epoch]))

    @property
    def has_every_epoch(self) -> bool:
        """Whether the weights of all epochs are kept."""
        return bool(self.weights) and all(map(self.has_epoch, self.weights))

    @cached_property
    def decode_stamp(self) -> str | None:
        """The stamp that completions and probes carry; None: no weights to test are known."""
        return self._tested_stamp("decode")

    @property
    def beams_stamp(self) -> str | None:
        """The stamp that beams carry; None: none are asked for, or no weights to test are known."""
        return self._tested_stamp("beams") if "beams" in self.addresses else None

    @property
    def decoding(self) -> dict[str, Any] | None:
        """What decode.json says of how sure it is that these weights gave the completions."""
        return self._json("decode", self.decode_stamp)

    @property
    def measure_stamp(self) -> str | None:
        """The stamp that scores and metrics carry; None: no weights to test are known."""
        if self.decode_stamp is None:
            return None
        made_from = {"measure": self.addresses["measure"], "completions": self.decode_stamp}
        beams = {} if self.beams_stamp is None else {"beams": self.beams_stamp}
        return address({**made_from, **beams})

    @cached_property
    def is_decoded(self) -> bool:
        """Whether completions, beams where they are asked for, and, of a cell made here, probes are
        those of the tested weights."""
        probed = not self._made_here or self.has("probes")
        return self.has("completions") and probed and (not self.beams_stamp or self.has("beams"))

    @cached_property
    def metrics(self) -> dict[str, Any] | None:
        """What metrics.json says; None unless completions and scores are current, too."""
        whole = self.is_decoded and self.has("scores")
        return self._json("metrics", self.measure_stamp) if whole else None

    @cached_property
    def failure(self) -> dict[str, Any]:
        """What FAILED.json says of the cell as it is asked for now; empty: it did not fail, or has
        results since."""
        found = self._json("FAILED", self.addresses["measure"])
        return {} if found is None or self.metrics is not None else found

    def comparison(
        self, other: CurrentCell, file: ComparisonFile = "comparison"
    ) -> dict[str, Any] | None:
        """What the file says of how this cell differs from another, as both are now."""
        return self._json(file, comparison_stamp(self, other))

    def place(self, file: CellFile) -> Path:
        """Where a Parquet file is; the training log of a tuned cell is that of the chosen trial."""
        chosen = self.chosen if file == "train_log" else None
        return (chosen or self).folder / f"{file}.parquet"

    def has(self, file: CellFile) -> bool:
        """Whether a Parquet file is there, and current."""
        if file == "train_log" and self.chosen is not None:
            return self.chosen.has(file)
        stamps = {"scores": self.measure_stamp, "beams": self.beams_stamp}
        wanted = stamps.get(file, self.decode_stamp)
        if file == "train_log":
            trained = self.receipt is not None
            wanted = training_stamp(self.addresses["train"], self.weights) if trained else None
        return wanted is not None and parquet_address(self.folder / f"{file}.parquet") == wanted

    def _json(self, name: str, stamp: str | None) -> dict[str, Any] | None:
        """The content of a JSON file if it carries this stamp."""
        file = self.folder / f"{name}.json"
        found = read_own_json(file)
        return keep_whole(found, file) if found and found.get("address") == stamp else None

    def _tested_stamp(self, stage: str) -> str | None:
        """The stamp of what a stage makes with the tested weights."""
        if self.tested is None:
            return None
        epoch, weights = self.tested
        return address({stage: self.addresses[stage], "epoch": epoch, "weights": weights})

    @property
    def _made_here(self) -> bool:
        return {"validate", "select"} <= self.addresses.keys()

    def _holds(self, folder: str, weights: Weights | None) -> bool:
        found = read_weights(self.folder / folder / "canary.json")
        return found is not None and found == weights


def current_cell(folder: Path, content: Mapping[str, Any]) -> CurrentCell:
    """The cell that a cell.json describes, in its folder."""
    source = None
    if content.get("source") is not None:
        source = _trained(*_beside(folder, content["source"]))
    return _trained(folder, content, source)


def _trained(
    folder: Path, content: Mapping[str, Any], source: CurrentCell | None = None
) -> CurrentCell:
    """A cell with its trials, if it has any."""
    places = [_beside(folder, name) for name in content.get("trials") or ()]
    trials = tuple(CurrentCell(home, said["addresses"], is_base=False) for home, said in places)
    return CurrentCell(folder, content["addresses"], content.get("loss") == BASE, source, trials)


def _beside(folder: Path, name: Any) -> tuple[Path, Mapping[str, Any]]:
    """The folder that a cell.json names, and its own cell.json."""
    home = folder.parent / require_inside(str(name), folder / "cell.json")
    described = read_own_json(home / "cell.json")
    described = described and keep_whole(described, home / "cell.json")
    return home, described or {"addresses": _GONE}


_GONE = {"train": "", "validate": "", "select": ""}
"""The addresses of a cell without a cell.json: nothing of it is current."""


def training_stamp(train: str, weights: Mapping[int, str]) -> str:
    """The stamp of the log of the training at this address that gave these weights by epoch."""
    return address({"train": train, "weights": sorted(weights.items())})


def comparison_stamp(cell: CurrentCell, other: CurrentCell) -> str:
    """The stamp of how a measured cell differs from another one."""
    return f"{cell.measure_stamp}-{other.measure_stamp}"
