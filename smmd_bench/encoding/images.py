"""Reading pictures from files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from ..contracts import Progress
from ..errors import UserError, reason_of

# A picture takes milliseconds: to report each would fill a log.
_STEP = 100
# Pillow's readers raise more than OSError for broken files.
_BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)


def read_image(path: Path) -> Image.Image:
    """The picture of a file in RGB, read to its end; what is transparent becomes white. Raises
    UserError, which names the file, if it is absent or broken."""
    try:
        with Image.open(path) as image:
            # Converted at once, what is transparent would become black.
            if not image.has_transparency_data:
                return image.convert("RGB")
            ground = Image.new("RGBA", image.size, "white")
            return Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")
    except FileNotFoundError as error:
        raise UserError(f"The image {path} does not exist: put it there.") from error
    except _BROKEN as error:
        raise UserError(
            f"The image {path} cannot be read ({reason_of(error)}): copy it."
        ) from error


def image_size(path: Path) -> tuple[int, int]:
    """(width, height) by the header of a file; raises UserError as `read_image` does."""
    try:
        with Image.open(path) as image:
            return image.size
    except _BROKEN:
        # `read_image` fails for the same reason, and says so in a sentence.
        return read_image(path).size


def check_images(paths: Iterable[Path], progress: Progress | None = None) -> None:
    """Read every picture once, so that none can end a training in the middle of an epoch. Raises
    UserError for the first that is absent or broken."""

    # A picture that many examples share is read once.
    wanted = list(dict.fromkeys(paths))
    for done, path in enumerate(wanted, 1):
        read_image(path)
        if progress is not None and (done % _STEP == 0 or done == len(wanted)):
            progress("check images", done, len(wanted))
