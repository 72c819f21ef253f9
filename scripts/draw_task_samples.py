"""Draw docs/images/sample_TASK.png: the pictures of the first test examples of the vision tasks."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from smmd_bench.plugin_system.registry import load_task

FOLDER = Path(__file__).parent.parent / "docs" / "images"
COUNTS = {"clock_time": 5, "chartqa": 3}
"""How many pictures stand side by side; a chart has two questions, so it is there twice."""
_HEIGHT, _GAP = 200, 8


def sample(task: str) -> Image.Image:
    """Different pictures of the first examples, side by side."""
    files = (e.images[0] for e in load_task(task).examples("test", 0, 2 * COUNTS[task]))
    pictures = []
    for file in list(dict.fromkeys(files))[: COUNTS[task]]:
        with Image.open(file) as picture:
            width = round(picture.width * _HEIGHT / picture.height)
            pictures.append(picture.convert("RGB").resize((width, _HEIGHT)))
    total = sum(p.width for p in pictures) + _GAP * (len(pictures) - 1)
    sheet = Image.new("RGB", (total, _HEIGHT), "white")
    x = 0
    for picture in pictures:
        sheet.paste(picture, (x, 0))
        x += picture.width + _GAP
    return sheet


if __name__ == "__main__":
    for name in COUNTS:
        sample(name).save(FOLDER / f"sample_{name}.png", optimize=True)
