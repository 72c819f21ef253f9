"""What matplotlib embeds of a font in a PDF."""

import io
import re
import zlib
from contextlib import nullcontext

import pytest
from fontTools.ttLib import TTFont

from smmd_bench.publishing.pdf_fonts import LAYOUT, small_fonts
from smmd_bench.publishing.style import figure_style, new_figure


@pytest.mark.parametrize(("fonts", "left_out"), [(small_fonts, True), (nullcontext, False)])
def test_the_tables_that_lay_out_texts_are_left_out_and_nothing_else(fonts, left_out):
    figure, file = new_figure(2, 1), io.BytesIO()
    figure.text(0.1, 0.5, "AVAST 12")
    with figure_style(), fonts():
        figure.savefig(file, format="pdf")
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", file.getvalue(), re.DOTALL)
    contents = [zlib.decompress(stream) for stream in streams if stream[:1] == b"x"]
    (font,) = [TTFont(io.BytesIO(one)) for one in contents if one[:4] == b"\0\1\0\0"]
    assert {"glyf", "head", "hhea", "hmtx", "loca", "maxp"} < {*font.keys()}
    assert {*LAYOUT}.isdisjoint(font.keys()) == left_out
