"""The folder of a run: who may write there, what is done in it, and what each stage left."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..experiment.experiment import Experiment
from ..models.recipe import Recipe
from ..results.frames import FORMAT
from ..storage.current import CurrentCell
from ..storage.files import read_json, write_json, write_json_if_new
from .manifest import identities, manifest_of

Stage = Literal["train", "decode", "measure"]
STAGES: tuple[Stage, ...] = ("train", "decode", "measure")


@dataclass(frozen=True)
class RunDirectory:
    """A run's folder. A cell's folder is named by its train address."""

    path: Path

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell's files are."""
        return cell.folder(self.path)

    def current(self, cell: Cell) -> CurrentCell:
        """The cell's files as they are now."""
        return cell.files(self.path)

    def missing(self, cell: Cell) -> list[Stage]:
        """The stages that are still to do, in order; each implies those after it."""
        now = self.current(cell)
        trained = now.source or now
        if trained.tested is None:
            again = not cell.is_base and trained.has_every_epoch
            return _from("decode" if again or now.source else "train")
        if not cell.is_base and trained.checkpoint is None:
            kept = trained.has_epoch(trained.tested.epoch)
            return _from("decode" if kept or now.source else "train")
        if not now.is_decoded:
            return _from("decode")
        return _from("measure") if now.metrics is None else []

    def failure(self, cell: Cell) -> dict[str, Any] | None:
        """The cell's FAILED.json."""
        return self.current(cell).failure or None

    def notes(self, cell: Cell) -> list[str]:
        """What training and decoding noted for people."""
        now = self.current(cell)
        said = (now.receipt or {}, now.decoding or {})
        return [note for receipt in said for note in receipt.get("notes", [])]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process alone.

        Raises UserError if another process works on it, or if it cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"The output folder {self.path} cannot be made ({error.strerror}): choose another "
                "with --out."
            ) from error
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"Another process is working on {self.path}: wait for it, or choose another folder "
                "with --out."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def require_own(self, experiment: Experiment, *, extend: bool) -> None:
        """Raise UserError if the folder belongs to another experiment and `extend` does not add to
        it, or holds something that is no run."""
        manifest = read_json(self.path / "manifest.json")
        if manifest is None:
            strange = [p.name for p in self.path.iterdir() if p.name != ".lock"]
            if strange:
                raise UserError(
                    f"The output folder {self.path} is not empty and holds no run "
                    f"({sorted(strange)[0]}): choose another with --out."
                )
        elif experiment.to_dict() not in manifest["experiments"] and not extend:
            raise UserError(
                f"The output folder {self.path} belongs to another experiment "
                f"({manifest['name']}): choose another with --out, or add to it with --extend."
            )
        _check_training(self.path, experiment.cells, (manifest or {}).get("cells", []))

    def claim(self, experiments: Sequence[Experiment], name: str | None = None) -> None:
        """Add experiments to those of the folder: write every cell.json, then the manifest.

        `name` is that of a new run (None: the first experiment's). A cell with the same model,
        task, loss and seed as an earlier one takes its place; the files of that one stay. Cells
        that another version of this package wrote in another format are dropped.
        """
        before = read_json(self.path / "manifest.json")
        cells = list(dict.fromkeys(c for experiment in experiments for c in experiment.cells))
        own = {
            cell.addresses["train"]: {**cell_to_json(cell), **more}
            for cell, more in zip(cells, identities(cells), strict=True)
        }
        if before is None:  # what a killed claim leaves is this experiment's
            start = manifest_of(None, experiments, [], name or experiments[0].name)
            write_json(self.path / "manifest.json", start)
        for leftover in (self.path / "cells").glob("*/.*.part"):  # of a killed process
            if leftover.is_file():
                leftover.unlink()
        for address, content in own.items():
            write_json_if_new(self.path / "cells" / address / "cell.json", content)
        known = before["cells"] if before and before.get("format") == FORMAT else []
        held = _with_earlier(self.path, own, known)
        manifest = manifest_of(before, experiments, held, name or experiments[0].name)
        write_json_if_new(self.path / "manifest.json", manifest)

    def forget_failure(self, cell: Cell) -> None:
        """Remove FAILED.json before the cell is tried again."""
        (self.cell_folder(cell) / "FAILED.json").unlink(missing_ok=True)


def record_failure(folder: Path, stage: str, error: BaseException | str) -> None:
    """Write FAILED.json of a cell, or of an evaluation: the stage, the error, its traceback.

    It counts as long as the cell is asked for as cell.json says now.
    """
    lines = (
        "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else error
    )
    sentence = str(error).strip() or type(error).__name__
    if "No space left on device" in sentence:
        sentence += f": free some space on the disk of {folder}"
    cell = read_json(folder / "cell.json") or {}
    write_json(
        folder / "FAILED.json",
        {
            "address": cell.get("addresses", {}).get("measure"),
            "stage": stage,
            "error": sentence,
            "skipped": isinstance(error, CellSkippedError),
            "user_error": isinstance(error, UserError),
            "traceback": lines,
        },
    )


def cell_to_json(cell: Cell) -> dict[str, Any]:
    """What a worker needs to make the cell again; cell.json says it, and what identifies it."""
    return {
        "address": cell.addresses["train"],
        "model": cell.model,
        "model_label": cell.card.label,
        "params": cell.card.parameter_count(),
        "task": cell.task,
        "task_name": cell.task_plugin.name,
        "trained_on": cell.trained_on,
        **({} if cell.source is None else {"source": cell.source.addresses["train"]}),
        "loss": cell.loss,
        "loss_name": cell.loss.partition("[")[0],
        "seed": cell.seed,
        "data_seed": cell.data_seed,
        "engine": cell.engine,
        **({} if cell.engine_note is None else {"engine_note": cell.engine_note}),
        "recipe": asdict(cell.recipe),
        "addresses": cell.addresses,
    }


def cell_from_json(content: Mapping[str, Any]) -> Cell:
    """The cell that a request or a cell.json describes."""
    same = ("model", "task", "loss", "seed", "data_seed", "engine", "trained_on")
    return Cell(recipe=Recipe().changed(content["recipe"]), **{key: content[key] for key in same})


def _from(stage: Stage) -> list[Stage]:
    return list(STAGES[STAGES.index(stage) :])


def _check_training(path: Path, new: list[Cell], cells: Sequence[str]) -> None:
    """Raise UserError where tests of transfer of one name would have been trained on two tasks."""
    trained_on = {(cell.model, cell.task): cell.trained_on for cell in new if cell.source}
    for address in cells:
        content = read_json(path / "cells" / address / "cell.json") or {}
        key = (str(content.get("model")), str(content.get("task")))
        earlier = content.get("trained_on")
        if earlier is not None and trained_on.get(key, earlier) != earlier:
            raise UserError(
                f"{path} has {content['task']} as the test of {earlier}, and this experiment as "
                f"that of {trained_on[key]}: choose another folder with --out, or add "
                "--no-transfers."
            )


def _with_earlier(
    path: Path, own: Mapping[str, dict[str, Any]], earlier: Sequence[str]
) -> list[dict[str, Any]]:
    """The cells that a folder holds, each as its cell.json, in order: those of the folder, of which
    `own` take the places of what they replace, and the others of `own`.

    A test of transfer goes with the cell that trained its weights.
    """
    replacing = {_identity(content): content for content in own.values()}
    held = []
    for address in earlier:
        content = read_json(path / "cells" / address / "cell.json")
        if content is not None:
            held.append(replacing.pop(_identity(content), content))
    held += replacing.values()
    there = {content["address"] for content in held}
    return [content for content in held if content.get("source") in {None, *there}]


def _identity(content: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(content[key] for key in ("model", "task", "loss", "seed"))
