"""Pictures that are broken where only reading them to the end shows it."""

from pathlib import Path

from PIL import Image


def torn_png(path: Path) -> Path:
    """A PNG whose header is whole and whose second block of pixels is not.

    Pillow opens it, and raises SyntaxError, which is no OSError, when it reads the pixels.
    """
    Image.effect_noise((400, 400), 50).save(path)
    content = path.read_bytes()
    first = content.index(b"IDAT")
    path.write_bytes(
        content[: first + 4] + content[first + 4 :].replace(b"IDAT", b"\0\0\0\0")
    )
    return path
