"""The colours of figures in the dark."""

import colorsys
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.publishing.style import loss_styles
from smmd_bench.publishing.theme_colours import CONTRAST, INK, PAPER, contrast, dark_colour

COLOURS = st.integers(0, 0xFFFFFF).map("#{:06x}".format)
LOSSES = [
    "base",
    "ce",
    "gce",
    "dist2",
    "ntl",
    "ntil",
    "smmd",
    "numeric_ce",
    "brier",
    "cramer",
    "del",
    "nl_ntl",
    "raft",
    *(f"other[a={at}]" for at in range(6)),
]


def test_paper_and_ink_are_those_of_the_page():
    style = (resources.files("smmd_bench.publishing") / "web" / "page.css").read_text()
    assert re.search(r"--paper: light-dark\(#fff, (#\w+)\)", style)[1] == PAPER
    assert re.search(r"--ink: light-dark\(#\w+, (#\w+)\)", style)[1] == INK


def test_white_is_paper_and_black_is_ink():
    assert (dark_colour("#ffffff"), dark_colour("#000000")) == (PAPER, INK)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_seen_in_the_dark_in_its_own_hue(loss):
    colour = loss_styles(LOSSES)[loss].colour.lower()
    dark = dark_colour(colour)
    assert contrast(dark, PAPER) >= CONTRAST - 0.6 * (loss == "base")
    light, before = (
        colorsys.rgb_to_hls(*(c / 255 for c in bytes.fromhex(x[1:]))) for x in (dark, colour)
    )
    if before[2] > 0.2:
        assert light[0] == pytest.approx(before[0], abs=0.02)


def test_no_two_losses_become_one():
    assert len({dark_colour(style.colour.lower()) for style in loss_styles(LOSSES).values()}) == 19


@given(COLOURS)
def test_what_was_seen_on_white_is_seen_on_dark(colour):
    if contrast(colour, "#ffffff") >= CONTRAST:
        assert contrast(dark_colour(colour), PAPER) >= 3


@pytest.mark.parametrize("tint", ["#fdf1f0", "#eef6ff", "#f7f7f7"])
def test_a_pale_ground_becomes_a_dark_one(tint):
    assert contrast(dark_colour(tint), PAPER) < 1.6
