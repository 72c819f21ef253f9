"""Figures as SVG inside the page."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from smmd_bench.publishing import inline_svg as module
from smmd_bench.publishing.inline_svg import inline_svg, picture_uri
from smmd_bench.publishing.make_report import FIGURE_METADATA
from smmd_bench.publishing.style import figure_style, new_figure

HOSTILE = '</text><script>alert(1)</script>"&'


def saved(folder, draw):
    """A figure as matplotlib writes it for a report."""
    with figure_style():
        figure = new_figure()
        draw(figure)
        figure.savefig(folder / "a.svg", format="svg", metadata=FIGURE_METADATA["svg"])
    return folder / "a.svg"


def drawn(figure):
    left, right = figure.subplots(1, 2)
    left.plot([1, 2.5, 3], color="#D55E00", label=HOSTILE)
    left.bar([1, 2], [1, 2], hatch="//", color="#0072B2", edgecolor="white")
    left.set(title=HOSTILE, ylabel="$\\sigma^2$")
    right.imshow(np.arange(4).reshape(2, 2))
    left.plot([1], [1], "o").pop().set_url("javascript:alert(1)")


@pytest.fixture
def svg(tmp_path):
    text = inline_svg(saved(tmp_path, drawn), "mine", 'a "label" <b>')
    assert text is not None
    return text


def test_it_holds_shapes_and_text_alone(svg):
    root = ElementTree.fromstring(svg)
    assert {element.tag for element in root.iter()} <= module._ELEMENTS
    names = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on")}
    assert "javascript" not in svg
    assert "<script" not in svg
    assert root.get("aria-label") == 'a "label" <b>'
    assert HOSTILE in [element.text for element in root.iter("text")]


def test_its_ids_are_its_own_and_every_reference_has_one(svg):
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) > 0
    assert all(name.startswith("mine-") for name in ids)
    used = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)
    assert {one or other for one, other in used} == set(ids)


def test_every_colour_has_its_counterpart_on_dark_paper(svg):
    themed = dict(re.findall(r"--(\w{6}):light-dark\(#\w{6},(#\w{6})\)", svg))
    assert set(re.findall(r"var\(--(\w{6})\)", svg)) == set(themed)
    assert {"ffffff", "000000", "d55e00", "0072b2"} <= set(themed)
    body = svg.partition(">")[2]
    assert not re.findall(r"#[0-9a-f]{6}\b", re.sub(r"base64,[^\"]*", "", body))


def test_text_on_a_picture_keeps_its_colour(tmp_path):
    def heated(figure):
        axes = figure.subplots()
        axes.imshow(np.arange(4).reshape(2, 2))
        axes.text(0, 0, "dark", color="white")
        axes.text(1, 1, "bright")
        axes.set_title("title")

    svg = str(inline_svg(saved(tmp_path, heated), "mine", ""))
    styles = {text: style for style, text in re.findall(r'<text style="([^"]*)"[^>]*>(\w+)<', svg)}
    assert "fill:#ffffff" in styles["dark"]
    assert "fill:#000000" in styles["bright"]
    assert "fill" not in styles["title"]


def test_paths_end_where_matplotlib_ends_them(tmp_path):
    file = saved(
        tmp_path, lambda figure: figure.subplots().plot(np.random.default_rng(0).random(99))
    )
    whole = re.findall(r'd="(M [^"]*)"', file.read_text())
    longest = max(whole, key=len)
    expected = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", longest), dtype=float)
    short = max(re.findall(r' d="(M[^"]*)"', str(inline_svg(file, "a", ""))), key=len)
    steps = np.array(re.findall(r"-?[\d.]+", short), dtype=float).reshape(-1, 2)
    assert len(short) < len(longest) / 2
    np.testing.assert_allclose(steps.cumsum(axis=0), expected, atol=0.0051)


def test_a_figure_with_a_control_character_is_none(tmp_path):
    file = saved(tmp_path, lambda figure: figure.subplots().set_xlabel("a name"))
    file.write_text(file.read_text().replace("a name", "a \x1b[31m name"))
    assert inline_svg(file, "mine", "") is None


def test_text_of_an_earlier_matplotlib_keeps_its_size(tmp_path):
    style = "font: oblique 9px 'DejaVu Sans', 'Verdana'; text-anchor: middle"
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
    (tmp_path / "a.svg").write_text(f'{head}<text style="{style}">a</text></svg>')
    shown = "font:oblique 9px DejaVu Sans, Verdana, sans-serif;text-anchor:middle"
    assert f'<text style="{shown}">a</text>' in str(inline_svg(tmp_path / "a.svg", "a", ""))


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert saved(one, drawn).read_bytes() == saved(other, drawn).read_bytes()


def test_a_large_figure_is_none_and_its_picture_keeps_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 5_000)
    assert inline_svg(saved(tmp_path, drawn), "mine", "") is None
    rng = np.random.default_rng(0)
    flat = np.repeat(np.repeat(rng.integers(0, 2, (20, 30, 1)) * 255, 20, 0), 20, 1)
    Image.fromarray(flat.repeat(3, 2).astype("uint8")).save(tmp_path / "a.png")
    kind, _, content = picture_uri(tmp_path / "a.png").partition(";base64,")
    assert kind == "data:image/webp"
    with Image.open(io.BytesIO(base64.b64decode(content))) as image:
        assert (np.asarray(image.convert("RGB")) == flat.repeat(3, 2)).all()
