"""The checkpoints that a call evaluates: the base of each model, a run's cells, other folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..addresses import digest_of_files
from ..errors import UserError, did_you_mean
from ..experiment import BASE
from ..model_cards import ModelCard, model_card
from ..results.files import read_json
from ..results.run import RunFrames, read_run

_WEIGHTS = ("*.safetensors", "*.json", "*.model")


@dataclass(frozen=True)
class Target:
    """A checkpoint: what it is of, where its weights are, and what identifies them.

    task: what it was trained on; None for the base. cell: the cell's address; None for weights that
    are no cell's. base: the folder of the model it was trained from, which has the tokenizer.
    canary: what training wrote down of it, if anything.
    """

    model: str
    model_label: str
    params: int
    task: str | None
    loss: str
    seed: int
    cell: str | None
    epoch: int | None
    base: str
    kind: str
    path: str
    dtype: str
    identity: Mapping[str, Any]
    canary: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        """How people read of it: `ce seed 0`."""
        return self.loss if self.cell is None else f"{self.loss} seed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return asdict(self)


def find_targets(
    path: Path, losses: Sequence[str] = (), checkpoints: Iterable[Path] = ()
) -> tuple[list[Target], list[str]]:
    """The base and the selected checkpoint of every finished cell of a run, then the folders.

    `losses` keeps those of these losses (`base` is one). Also gives a sentence for each cell that
    cannot be evaluated. Raises UserError if nothing can.
    """
    run = read_run(path)
    cells = run.cells[
        run.cells["trained_on"].isna()
    ]  # a test of transfer has no weights of its own
    if "predictions" in run.manifest or cells.empty:
        raise UserError(
            f"{path} holds no checkpoint: give a folder that `smmd-bench train-eval` has made."
        )
    known = [BASE, *cells["loss"].unique(), *cells["loss_name"].unique()]
    for loss in losses:
        if loss not in known:
            raise UserError(f"No cell of {path} has the loss '{loss}': {did_you_mean(loss, known)}")
    cells = cells.assign(wanted=cells["loss"].isin(losses) | cells["loss_name"].isin(losses))
    found, notes = [], []
    for model, group in cells.groupby("model", observed=True, sort=False):
        card = model_card(str(model))
        dtype = str(group.iloc[0]["recipe"].get("dtype", "float32"))
        if not losses or BASE in losses:
            found.append(_base(card, group, dtype, run))
        for cell in group[group["loss"] != BASE].to_dict("records"):
            if losses and not cell["wanted"]:
                continue
            target = _trained(card, {str(k): v for k, v in cell.items()}, run)
            if isinstance(target, str):
                notes.append(target)
            else:
                found.append(target)
    models = [model_card(str(model)) for model in cells["model"].unique()]
    dtype = str(cells.iloc[0]["recipe"].get("dtype", "float32"))
    found += [_folder(Path(folder), models, dtype) for folder in checkpoints]
    if not found:
        raise UserError(f"{path} has no finished cell to evaluate: {' '.join(notes)}")
    return found, notes


def _base(card: ModelCard, cells: Any, dtype: str, run: RunFrames) -> Target:
    own = cells.loc[cells["loss"] == BASE, "address"]
    receipts = (read_json(run.path / "cells" / a / "train.json") for a in own)
    canary = next((r["epochs"][0]["canary"] for r in receipts if r), None)
    return Target(
        model=card.name,
        model_label=card.label,
        params=card.parameter_count(),
        task=None,
        loss=BASE,
        seed=0,
        cell=None,
        epoch=None,
        base=str(card.folder),
        kind="base",
        path=str(card.folder),
        dtype=dtype,
        identity={"base": dict(card.identity)},
        canary=canary,
    )


def _trained(card: ModelCard, cell: Mapping[str, Any], run: RunFrames) -> Target | str:
    """The selected checkpoint of a cell; a sentence where it has none."""
    folder = run.path / "cells" / str(cell["address"])
    name = f"{cell['model']} {cell['task']} {cell['loss']} seed {cell['seed']}"
    receipt, selection = read_json(folder / "train.json"), read_json(folder / "selection.json")
    if cell["status"] != "done" or receipt is None or selection is None:
        return f"{name} is {cell['status']} and is left out."
    weights = folder / "checkpoint"
    if not any(weights.glob("*.safetensors")):
        return f"{name} has no weights in {weights} any more and is left out."
    epoch = int(selection["best_epoch"])
    canaries = {int(entry["epoch"]): entry["canary"] for entry in receipt["epochs"]}
    return Target(
        model=card.name,
        model_label=card.label,
        params=card.parameter_count(),
        task=str(cell["task"]),
        loss=str(cell["loss"]),
        seed=int(cell["seed"]),
        cell=str(cell["address"]),
        epoch=epoch,
        base=str(card.folder),
        kind=str(receipt["kind"]),
        path=str(weights.resolve()),
        dtype=str(cell["recipe"].get("dtype", "float32")),
        identity={"cell": str(cell["address"]), "epoch": epoch},
        canary=canaries.get(epoch),
    )


def _folder(folder: Path, models: Sequence[ModelCard], dtype: str) -> Target:
    """A checkpoint from elsewhere: a full one, or an adapter on the run's model."""
    if not any(folder.glob("*.safetensors")):
        raise UserError(
            f"The checkpoint folder {folder} has no *.safetensors: save the model or the adapter "
            "there with save_pretrained of transformers or PEFT."
        )
    weights = sorted({file for pattern in _WEIGHTS for file in folder.glob(pattern)})
    identity: dict[str, Any] = {"digest": digest_of_files(weights, folder)}
    adapter = read_json(folder / "adapter_config.json")
    if adapter is None:
        card = model_card(str(folder.resolve()))
        base, kind = card.folder, "full"
    else:
        card = _base_of(folder, str(adapter.get("base_model_name_or_path")), models)
        base, kind = card.folder, "lora"
        identity["base"] = dict(card.identity)
    return Target(
        model=card.name if kind == "lora" else models[0].name,
        model_label=card.label,
        params=card.parameter_count(),
        task=None,
        loss=_name(folder.resolve()),
        seed=0,
        cell=None,
        epoch=None,
        base=str(base),
        kind=kind,
        path=str(folder.resolve()),
        dtype=dtype,
        identity=identity,
    )


def _name(folder: Path) -> str:
    """What stands in the column of losses: `checkpoint NAME`, with its parent's name where the
    folder's is `checkpoint`, as in a cell's."""
    if folder.name == "checkpoint":
        return f"checkpoint {folder.parent.name}"
    return f"checkpoint {folder.name}"


def _base_of(folder: Path, name: str, models: Sequence[ModelCard]) -> ModelCard:
    if len(models) == 1:
        return models[0]
    for card in models:
        if name in (card.name, str(card.folder)) or card.identity.get("hub") == name:
            return card
    raise UserError(
        f"The adapter {folder} was trained from {name}, which is no model of the run "
        f"({', '.join(card.name for card in models)}): give a run of that model."
    )
