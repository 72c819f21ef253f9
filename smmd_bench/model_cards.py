"""Which checkpoint a model name means, what identifies its weights, and the recipe it carries.

`builtin/tiny` lies in this package; a path is a local folder; anything else is a name on the
Hugging Face hub, `org/name` or `org/name@revision`, fetched with huggingface_hub.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from .addresses import digest_of_files
from .errors import UserError, did_you_mean
from .parameters import parameters_of, split_spec
from .recipe import Recipe, paper_recipe
from .registry import entries

_BUILTIN = "builtin/"
_PARTS = (
    "*.safetensors",
    "config.json",
    "generation_config.json",
    "tokenizer*.json",
    "*.model",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)


@dataclass(frozen=True)
class ModelCard:
    """A checkpoint on disk and what goes with it. `identity` names its weights and tokenizer."""

    name: str
    label: str
    folder: Path
    identity: Mapping[str, str]
    content: Mapping[str, Any]

    def recipe(self, task_name: str) -> Recipe:
        """The card's own recipe for a task if it has one, else the paper's."""
        if "recipe" not in self.content:
            return paper_recipe(task_name)
        settings = {**self.content["recipe"], **self._task(task_name)}
        settings.pop("parameters", None)
        return Recipe().changed(settings)

    def task_spec(self, spec: str) -> str:
        """The task spec with the card's task parameters where the spec names none."""
        name, values = split_spec(spec)
        if values:
            return spec
        parameters = self._task(name).get("parameters", {})
        inside = ",".join(f"{key}={value}" for key, value in parameters.items())
        return f"{name}[{inside}]" if inside else name

    def parameter_count(self) -> int:
        """How many weights the safetensors files hold."""
        from safetensors import safe_open

        total = 0
        for file in self.folder.glob("*.safetensors"):
            with safe_open(file, framework="numpy") as tensors:
                for name in tensors.keys():  # noqa: SIM118 (no iterator)
                    size = 1
                    for length in tensors.get_slice(name).get_shape():
                        size *= length
                    total += size
        return total

    def _task(self, name: str) -> dict[str, Any]:
        return dict(self.content.get("tasks", {}).get(name, {}))


@cache
def model_card(name: str) -> ModelCard:
    """Find a model by name.

    Raises UserError for an unknown built-in, a folder that is no checkpoint, or a hub name that
    cannot be fetched.
    """
    if name.startswith(_BUILTIN):
        return _builtin(name)
    folder = Path(name).expanduser()
    if folder.is_dir() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        return _local(name, folder)
    return _hub(name)


def _builtin(name: str) -> ModelCard:
    root = Path(str(files("smmd_bench") / "builtin"))
    known = [f"{_BUILTIN}{p.parent.name}" for p in root.glob("*/card.yaml")]
    if name not in known:
        raise UserError(f"Unknown built-in model '{name}': {did_you_mean(name, known)}")
    folder = root / name.removeprefix(_BUILTIN)
    content = yaml.safe_load((folder / "card.yaml").read_text(encoding="utf-8"))
    return ModelCard(name, content.get("label", name), folder, _identity(folder), content)


def _local(name: str, folder: Path) -> ModelCard:
    if not folder.is_dir():
        raise UserError(
            f"The checkpoint folder '{name}' does not exist: give a folder with config.json and "
            "*.safetensors, a hub name such as Qwen/Qwen2.5-0.5B, or builtin/tiny."
        )
    for pattern in ("config.json", "*.safetensors"):
        if not list(folder.glob(pattern)):
            raise UserError(
                f"The checkpoint folder '{name}' has no {pattern}: save the model there with "
                "save_pretrained (safetensors only)."
            )
    card = folder / "card.yaml"
    content = yaml.safe_load(card.read_text(encoding="utf-8")) if card.exists() else {}
    return ModelCard(name, content.get("label", folder.name), folder, _identity(folder), content)


def _hub(name: str) -> ModelCard:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    repository, _, revision = name.partition("@")
    try:
        folder = Path(
            snapshot_download(repository, revision=revision or None, allow_patterns=list(_PARTS))
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"The model '{name}' is no folder here and cannot be fetched from the hub ({reason}): "
            "check the name and the connection, or give a local folder."
        ) from error
    return ModelCard(name, repository, folder, {"hub": repository, "commit": folder.name}, {})


def _identity(folder: Path) -> dict[str, str]:
    parts = [file for pattern in _PARTS for file in folder.glob(pattern)]
    return {"digest": digest_of_files(parts, folder)}


def check_card(card: ModelCard) -> None:
    """Raise UserError if the card's recipe or task parameters name something unknown."""
    tasks = {entry.name: entry.plugin for entry in entries("tasks")}
    for name, settings in card.content.get("tasks", {}).items():
        card.recipe(name)
        plugin = tasks.get(name)
        known = parameters_of(plugin) if plugin else {}
        for key in settings.get("parameters", {}):
            if key not in known:
                raise UserError(
                    f"The card of {card.name} sets {name}[{key}], which does not exist: "
                    f"{did_you_mean(key, known)}"
                )
