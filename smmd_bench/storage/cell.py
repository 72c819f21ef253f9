"""What a run folder holds of a cell: in it, a path is a stamp.

What a stage makes lies in a folder that is named by a digest of everything it was made from, and
appears there whole, by one rename. If it exists, it is current; if its inputs change, its name is
another one. The manifest has the part of each name that is known before training; the rest is the
digest of the weights, or the name of the folder, that came before:

    train/KEY/      receipt.json, canaries.json, log.parquet, epochs/1/ 2/ ...
    validate/KEY/   validation.parquet           part, digests of the epochs' weights
    select/KEY/     selection.json               part, the folder of the validation
                    (of a tuned cell: the choice among its trials; part, their selections)
    decode/KEY/     completions.parquet, probes.parquet, decode.json
                                                 part, digest of the selected weights
    beams/KEY/      beams.parquet                the same
    measure/KEY/    scores.parquet, metrics.json part, the folders of completions and beams
    compare/KEY/    comparison.json              the folders of the two measurements, and the
                                                 version of the statistic that compares them
    failed/KEY.json                              all parts of the cell

`epochs/` holds what is needed: every epoch until one is selected, then that one alone, and none
after `smmd-bench clean`. A cell whose measurement is there is done all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from .addresses import address
from .files import read_own_json

CellFile = Literal["completions", "scores", "probes", "beams", "train_log"]
BASE = "base"
"""The loss of a cell that trains nothing, and the digest of the weights that it is tested with."""
FOLDERS = ("train", "validate", "select", "decode", "beams", "measure", "compare")
"""The folders of a run that hold one folder a key."""


class FolderRecord(TypedDict):
    """What the folders of a cell follow from, as the manifest holds it."""

    address: str
    parts: dict[str, str]
    source: NotRequired[FolderRecord]
    trials: NotRequired[list[FolderRecord]]


class _NamedRecord(FolderRecord):
    model: str
    task: str
    task_name: str
    loss: str
    seed: int


class CellRecord(_NamedRecord, total=False):
    """A cell as the manifest, the request of a job and `RunFrames.described` hold it.

    `run.cell_json` writes it and makes the `Cell` again, `stored_cell` finds its folders,
    `cell_row` makes its row of `run.cells`, and `cell_key` tells what it is compared with.
    `folders` is for readers without this package.
    Completions made elsewhere have a `reference` in place of all that training needs.
    """

    trained_on: str | None
    model_label: str
    model_path: str
    params: int | None
    task_spec: str
    loss_name: str
    data_seed: int
    engine: str
    engine_note: str
    recipe: dict[str, Any]
    grid: list[dict[str, Any]]
    trial: str
    folders: dict[str, str]
    decoders: list[str]
    identity: dict[str, Any]
    data: dict[str, Any]
    generation: dict[str, Any]
    plugins: dict[str, str]
    packages: dict[str, str]
    reference: str
    file: dict[str, Any]


class Weights(NamedTuple):
    """The weights that a cell tests: the epoch (0: untrained), and the digest of their files."""

    epoch: int
    digest: str


@dataclass(frozen=True)
class StoredCell:
    """The folders of a cell, as they are on disk when they are first asked for.

    parts: by stage, what its folder's name follows from beside what came before; completions made
    elsewhere have `decode` and `measure` alone. source: the cell whose weights a test of transfer
    tests. trials: of a tuned cell, which tests the weights of the chosen one.
    """

    run: Path
    address: str
    parts: Mapping[str, str]
    is_base: bool = False
    source: StoredCell | None = None
    trials: tuple[StoredCell, ...] = ()

    @property
    def others(self) -> tuple[StoredCell, ...]:
        """Those that train what it may test: the source of a test of transfer, and the trials."""
        return self.trials if self.source is None else (self.source, *self.trials)

    @property
    def family(self) -> Iterator[StoredCell]:
        """The cell, and the families of the others."""
        yield self
        for other in self.others:
            yield from other.family

    @property
    def home(self) -> StoredCell | None:
        """The cell that has trained the weights to test; None: no trial is chosen."""
        if self.source is not None:
            return self.source.home
        return self.chosen if self.trials else self

    @property
    def trained(self) -> Path:
        """The folder of the training."""
        return self.run / "train" / self.parts["train"]

    @cached_property
    def receipt(self) -> dict[str, Any] | None:
        """What training left in receipt.json."""
        # A test of transfer and a tuned cell have that of the cell whose weights they test.
        if "train" in self.parts:
            return read_own_json(self.trained / "receipt.json")
        return None if self.home in (None, self) else self.home.receipt

    @property
    def weights(self) -> dict[int, str]:
        """The digest of every epoch's weights."""
        epochs = (self.receipt or {}).get("epochs", ())
        return {int(epoch["epoch"]): str(epoch["weights"]) for epoch in epochs}

    def epoch(self, epoch: int) -> Path:
        """The folder of an epoch's weights."""
        return self.trained / "epochs" / str(epoch)

    def has_weights(self, epoch: int) -> bool:
        """Whether an epoch's weights are there."""
        return any(self.epoch(epoch).glob("*.safetensors"))

    @cached_property
    def validated(self) -> Path | None:
        """The folder of the validation; None: the cell has none, or is not trained."""
        if self.receipt is None or "validate" not in self.parts:
            return None
        return self._folder("validate", sorted(self.weights.items()))

    @property
    def has_validation(self) -> bool:
        """Whether the validation split is decoded with the weights of every epoch."""
        folder = self.validated
        return folder is not None and (folder / "validation.parquet").is_file()

    @cached_property
    def selected(self) -> Path | None:
        """The folder of the selection; None: what it follows from is not there."""
        # The best of some trials is not the best of all.
        if self.trials:
            is_unfinished = any(trial.selection is None for trial in self.trials)
            if is_unfinished:
                return None
            selections = filter(None, [trial.selected for trial in self.trials])
            names = [folder.name for folder in selections]
            return self._folder("select", names)
        if self.validated is None:
            return None
        return self._folder("select", self.validated.name)

    @cached_property
    def choice(self) -> dict[str, Any] | None:
        """Which trial of a tuned cell is tested (its place), and how each of them validated."""
        return self._json(self.selected, "selection") if self.trials else None

    @property
    def chosen(self) -> StoredCell | None:
        """The trial that is tested."""
        return None if self.choice is None else self.trials[int(self.choice["chosen"])]

    @cached_property
    def selection(self) -> dict[str, Any] | None:
        """What selection.json says of the epochs of the tested training."""
        if self.trials:
            return None if self.chosen is None else self.chosen.selection
        if self.source is not None:
            return None
        return self._json(self.selected, "selection")

    @cached_property
    def tested(self) -> Weights | None:
        """The weights to test; None: they are not trained, or not selected yet."""
        if self.home not in (None, self):
            return self.home.tested
        # Completions made elsewhere say nothing of weights, and need none.
        if "train" not in self.parts:
            return None if self.trials or self.source else Weights(0, "")
        # The base trains nothing, but its canary must be there before it is decoded.
        if self.is_base and self.receipt is not None:
            return Weights(0, BASE)
        if self.is_base or self.selection is None:
            return None
        epoch = int(self.selection["best_epoch"])
        return Weights(epoch, self.weights[epoch])

    @property
    def checkpoint(self) -> Path | None:
        """The folder with the selected weights; None: they are not there, or no longer."""
        home = self.home
        if home is None or home.tested is None:
            return None
        # The weights of the base are the model's own, and lie in no run.
        if home.is_base or "train" not in home.parts:
            return None
        epoch = home.tested.epoch
        return home.epoch(epoch) if home.has_weights(epoch) else None

    @cached_property
    def decoded(self) -> Path | None:
        """The folder of completions and probes; None: no weights to test are known."""
        return self._tested("decode")

    @cached_property
    def beamed(self) -> Path | None:
        """The folder of the beams; None: none are asked for, or no weights to test are known."""
        return self._tested("beams")

    @cached_property
    def measured(self) -> Path | None:
        """The folder of scores and metrics; None: no weights to test are known."""
        folders = (self.decoded, self.beamed)
        # Of a cell without beams the name is that of before there were any.
        made_from = [folder.name for folder in folders if folder is not None]
        return self._folder("measure", made_from) if made_from else None

    @property
    def is_decoded(self) -> bool:
        """Whether completions, and beams where they are asked for, are there."""
        has_beams = "beams" not in self.parts or self.has("beams")
        return has_beams and self.has("completions")

    @property
    def decoding(self) -> dict[str, Any] | None:
        """What decode.json says of how sure it is that these weights gave the completions."""
        return self._json(self.decoded, "decode")

    @cached_property
    def metrics(self) -> dict[str, Any] | None:
        """What metrics.json says; None unless completions and scores are there, too."""
        if not self.is_decoded or not self.has("scores"):
            return None
        return self._json(self.measured, "metrics")

    @property
    def key(self) -> str:
        """What follows from all parts of the cell: the name of its failure."""
        # A trial that changes makes another cell, which has not failed yet.
        others = [cell.key for cell in self.others]
        return address({"parts": self.parts, "others": others})

    @cached_property
    def failure(self) -> dict[str, Any]:
        """What failed/KEY.json says; empty: the cell did not fail, or has results since."""
        failure = read_own_json(failure_file(self.run, self.key))
        return {} if failure is None or self.metrics is not None else failure

    def compared_with(self, other: StoredCell, statistic: str) -> Path:
        """The folder of how this measured cell differs from another one, by a version of the
        statistic: that of the code, so that no comparison by an older one is ever shown."""
        assert self.measured is not None
        assert other.measured is not None
        measured = {"mine": self.measured.name, "other": other.measured.name}
        return self.run / "compare" / address({**measured, "statistic": statistic})

    def comparison(self, other: StoredCell, statistic: str) -> dict[str, Any] | None:
        """Read how this cell differs from another, as both are now; None: nobody has compared
        them."""
        return self._json(self.compared_with(other, statistic), "comparison")

    def place(self, file: CellFile) -> Path | None:
        """Where a Parquet file of the cell is, or would be; None: that is not known yet."""
        if file == "train_log":
            if self.home is None or "train" not in self.home.parts:
                return None
            return self.home.trained / "log.parquet"
        folders = {"scores": self.measured, "beams": self.beamed}
        folder = folders.get(file, self.decoded)
        return None if folder is None else folder / f"{file}.parquet"

    def has(self, file: CellFile) -> bool:
        """Whether a Parquet file is there."""
        place = self.place(file)
        return place is not None and place.is_file()

    @property
    def folders(self) -> Iterator[Path]:
        """The folders of the cell itself that are known, there or not."""
        if "train" in self.parts:
            yield self.trained
        later = (self.validated, self.selected, self.decoded, self.beamed)
        for folder in (*later, self.measured):
            if folder is not None:
                yield folder

    def _tested(self, stage: str) -> Path | None:
        if stage not in self.parts or self.tested is None:
            return None
        return self._folder(stage, self.tested.digest)

    def _folder(self, stage: str, made_from: Any) -> Path:
        key = address({"part": self.parts[stage], "made from": made_from})
        return self.run / stage / key

    def _json(self, folder: Path | None, name: str) -> dict[str, Any] | None:
        return None if folder is None else read_own_json(folder / f"{name}.json")


def failure_file(run: Path, key: str) -> Path:
    """Name where a run says why a cell (`StoredCell.key`) or an evaluation (its address) failed."""
    return run / "failed" / f"{key}.json"


def stored_cell(run: Path, content: FolderRecord) -> StoredCell:
    """Find the folders in a run of the cell that a record describes."""
    return StoredCell(
        run,
        content["address"],
        content["parts"],
        content.get("loss") == BASE,
        None if content.get("source") is None else stored_cell(run, content["source"]),
        tuple(stored_cell(run, trial) for trial in content.get("trials") or ()),
    )
