"""A figure as SVG inside the page: it follows the theme, and brings in nothing but its shapes.

Matplotlib's SVG is read as XML, and only the elements, attributes and style properties named here
are written again. So a figure of any plugin holds no script, no link and no style sheet, its ids
are its own among those of the page, and it is a third as long.
"""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from xml.etree import ElementTree

from .theme_colours import dark_colour

LARGEST = 300_000
"""Characters of an SVG from which on the page shows a picture instead."""
COLOURS = 128
"""Of such a picture: lines and letters need no more."""

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = {
    "svg", "g", "defs", "path", "rect", "use", "clipPath", "pattern", "text", "tspan", "image",
}  # fmt: skip
_TEXTS = {"text", "tspan"}
_NUMBERS = {"d", "x", "y", "width", "height", "transform", "viewBox"}
_PLAIN = {"patternUnits", "preserveAspectRatio"}
_PAINTED = {"fill", "stroke", "clip-path"}
_STYLES = {
    "fill", "fill-opacity", "fill-rule", "stroke", "stroke-opacity", "stroke-width", "opacity",
    "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "text-anchor",
    "stroke-miterlimit", "font", "font-size", "font-style", "font-weight",
}  # fmt: skip
_COLOUR = re.compile(r"#[0-9a-f]{6}$")
_REFERENCE = re.compile(r"url\(#([\w.-]+)\)")
_VALUE = re.compile(r"[\w\s.,%#-]*$")
_COMMAND = re.compile(r"([A-Za-z])([^A-Za-z]*)")
_DECIMALS = re.compile(r"-?\d+\.\d+")
_FONT = re.compile(r"\bfont: ([\w. ]*px) [^;]*")
"""How matplotlib before 3.11 writes the size of a text and the fonts that it may have."""
_PICTURE = "data:image/png;base64,"


def inline_svg(file: Path, name: str, label: str) -> str | None:
    """The `<svg>` element of a file that matplotlib wrote; None if it is too large, or no XML
    because a name in it has control characters.

    Ids begin with `name`; `label` is what a screen reader says.
    """
    if file.stat().st_size > 8 * LARGEST:
        return None
    try:
        root = ElementTree.parse(file).getroot()
    except ElementTree.ParseError:
        return None
    copy = _Copy(root, name)
    (svg,) = copy.of(root)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    themed = [f"--{c[1:]}:light-dark({c},{dark_colour(c)})" for c in sorted(copy.colours)]
    svg.attrib = {
        "viewBox": svg.attrib["viewBox"],
        "width": f"{width * 4 / 3:.0f}",  # points as CSS pixels
        "height": f"{height * 4 / 3:.0f}",
        "role": "img",
        "aria-label": label,
        "style": ";".join([f"min-width:min({width:.0f}px,40rem)", *themed]),  # or it scrolls
    }
    text = ElementTree.tostring(svg, encoding="unicode").replace(" />", "/>")
    return text if len(text) <= LARGEST else None


def picture_uri(file: Path) -> str:
    """A PNG as a data URI; as WebP of that many colours where that is smaller."""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(file) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.convert("RGB").save(buffer, "WEBP", lossless=True, method=4)
    whole = file.read_bytes()
    form, content = min(("png", whole), ("webp", buffer.getvalue()), key=lambda one: len(one[1]))
    return f"data:image/{form};base64,{base64.b64encode(content).decode('ascii')}"


class _Copy:
    """What of a figure may be in the page."""

    def __init__(self, root: ElementTree.Element, name: str) -> None:
        used: list[str] = []
        for element in root.iter():
            used += _REFERENCE.findall(" ".join(element.attrib.values()))
            used += [target[1:]] if (target := element.get(_HREF, "")).startswith("#") else []
        self.ids = {old: f"{name}-{at}" for at, old in enumerate(dict.fromkeys(used))}
        self.colours: set[str] = set()
        self.pictures = [
            tuple(float(image.get(name, 0)) for name in ("x", "y", "width", "height"))
            for image in root.iter(f"{_SVG}image")
        ]

    def of(self, element: ElementTree.Element) -> list[ElementTree.Element]:
        """The element; of a link, and of a group that says nothing, its children."""
        tag = str(element.tag).removeprefix(_SVG)
        if tag == "a":
            return [copy for child in element for copy in self.of(child)]
        if tag not in _ELEMENTS:
            return []
        found = ElementTree.Element(tag)
        for key, value in element.attrib.items():
            self._set(found, key, value)
        found.text = element.text if tag in _TEXTS else None
        if tag == "text" and self._over_picture(element):
            style = re.sub(r"var\(--(\w+)\)", r"#\1", found.get("style", ""))
            found.set("style", style if "fill:" in style else f"{style};fill:#000000")
        found.extend(copy for child in element for copy in self.of(child))
        silent = tag == "g" and not found.attrib
        return [*found] if silent or (tag == "defs" and not len(found)) else [found]

    def _over_picture(self, text: ElementTree.Element) -> bool:
        """Whether a text begins on a picture, which looks the same on dark paper: so does it."""
        x, y = (float(text.get(name, "nan")) for name in ("x", "y"))
        return any(  # matplotlib turns pictures upside down: y is minus the upper edge
            left <= x <= left + width and -upper <= y <= height - upper
            for left, upper, width, height in self.pictures
        )

    def _set(self, found: ElementTree.Element, key: str, value: str) -> None:
        """Give an attribute to the copy, if it may have it."""
        if key == "id" and value in self.ids:
            found.set("id", self.ids[value])
        elif key in _NUMBERS and not value.startswith("rotate(-0 "):
            found.set(key, _path(value) if key == "d" else _shorter(value))
        elif key in _PLAIN:
            found.set(key, value)
        elif key in _PAINTED:
            found.set(key, self._painted(value))
        elif key == "style":
            plain = _FONT.sub(r"font: \1 DejaVu Sans, Verdana, sans-serif", value)
            parts = (part.partition(":") for part in plain.split(";"))
            kept = {
                k.strip(): self._painted(v.strip()) for k, _, v in parts if k.strip() in _STYLES
            }
            found.set("style", ";".join(f"{k}:{v}" for k, v in kept.items() if v))
        elif key == _HREF and value[1:] in self.ids:
            found.set("href", f"#{self.ids[value[1:]]}")
        elif key == _HREF and found.tag == "image" and value.startswith(_PICTURE):
            found.set("href", "".join(value.split()))

    def _painted(self, value: str) -> str:
        """A colour as the variable of its counterparts, a reference with the figure's own id."""
        if _COLOUR.match(value):
            self.colours.add(value)
            return f"var(--{value[1:]})"
        if found := _REFERENCE.fullmatch(value):
            return f"url(#{self.ids[found[1]]})"
        return _shorter(value) if _VALUE.match(value) else ""


def _shorter(numbers: str) -> str:
    """With at most two decimals: a hundredth of a point."""
    return _DECIMALS.sub(lambda found: f"{round(float(found[0]), 2):g}", numbers)


def _path(data: str) -> str:
    """A path in few letters: a line is told by how far it goes, in hundredths of a point."""
    written, before, x, y = "", "", 0, 0
    for command, numbers in _COMMAND.findall(data):
        ends = [round(100 * float(number)) for number in numbers.split()]
        if command == "L":
            steps = [ends[0] - x, ends[1] - y]
            written += _spelled(steps, "" if before == "L" else "l")
        else:
            written += _spelled(ends, command)
        before = command
        x, y = ends[-2:] if ends else (x, y)
    return written


def _spelled(hundredths: list[int], command: str) -> str:
    """The command and its numbers; a minus needs no space before it."""
    text = "".join(f" {number / 100:g}" for number in hundredths).replace(" -", "-")
    return command + text.removeprefix(" ") if command else text
