"""Which plugin files may run: those that this user has named, on the command line or in an
experiment file that was run.

A run folder names plugin files, too, and may come from a stranger. So a file that only a folder
names runs where its content has been named before: CACHE/plugins/DIGEST says so.
"""

from pathlib import Path

from ..errors import UserError
from ..storage.addresses import cache_folder, content_digest
from .registry import load_plugin_file, plugin_files


def load_named(file: Path) -> None:
    """Register the plugins of a file that the user has named, and remember its content."""
    load_plugin_file(file)
    mark = _mark(file)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def load_of_run(file: Path) -> None:
    """The same for a file that a run folder names.

    Raises UserError where the user has never named a file of this content.
    """
    if file.resolve() in plugin_files():
        return
    if file.is_file() and not _mark(file).exists():
        raise UserError(
            f"The plugin file {file} runs only if you name it: read it, and give --plugin {file}."
        )
    load_plugin_file(file)


def _mark(file: Path) -> Path:
    return cache_folder() / "plugins" / content_digest(file)
