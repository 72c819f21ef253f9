"""The licence of a checkpoint, as the README that goes with it states it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cards import ModelCard

_BUILT_IN = "Apache-2.0, part of smmd-bench"


def licence_of(card: ModelCard) -> str | None:
    """What the README of a model says (on the hub it is fetched with it); None: nothing."""
    if card.name.startswith("builtin/"):
        return _BUILT_IN
    readme = card.folder / "README.md"
    if "hub" in card.identity:
        readme = _fetched(card) or readme
    if not readme.is_file():
        return None
    from huggingface_hub import ModelCard as HubCard

    try:
        data = HubCard.load(readme, ignore_metadata_errors=True).data
    except (OSError, ValueError):  # no text, or a head that is no YAML
        return None
    name, licence = data.get("license_name"), data.get("license")
    found = name or licence
    return ", ".join(found) if isinstance(found, list) else found and str(found)


def _fetched(card: ModelCard) -> Path | None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return Path(
            hf_hub_download(card.identity["hub"], "README.md", revision=card.identity["commit"])
        )
    except (HfHubHTTPError, OSError, ValueError):  # it has none, or there is no network
        return None
