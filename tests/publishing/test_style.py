import colorsys
import sys

import pytest

from smmd_bench.plugin_system.registry import names
from smmd_bench.publishing.style import (
    NARROW,
    add_legend,
    figure_style,
    folded,
    loss_label,
    loss_styles,
    model_label,
    new_figure,
    shortened,
)

OWN = ["base", *names("losses")]


def test_every_loss_of_the_package_has_a_style_that_no_other_has():
    styles = loss_styles(OWN)
    assert loss_styles(["smmd"])["smmd"] == styles["smmd"]

    # An arrow as a marker would say that a point is cut off.
    spare = loss_styles([f"own{at}" for at in range(6)])
    markers = {style.marker for style in spare.values()}
    assert not markers & {"<", ">"}

    styles |= spare
    for part in ("colour", "line", "marker"):
        parts = {getattr(style, part) for style in styles.values()}
        assert len(parts) == len(styles), part


def test_a_variant_has_the_hue_of_its_loss_and_a_marker_of_its_own():
    variants = ("smmd[lambda=1]", "smmd[tuned]", "ntl[lambda=1]")
    styles = loss_styles(["smmd", "ntl", *variants])
    hues = [hue_of(style.colour) for style in styles.values()]
    smmd, ntl, *of_variants = hues
    assert of_variants == pytest.approx([smmd, smmd, ntl], abs=0.01)
    for part in ("colour", "marker"):
        of_smmd = {getattr(styles[loss], part) for loss in ("smmd", *variants[:2])}
        assert len(of_smmd) == 3


def hue_of(colour):
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    return colorsys.rgb_to_hls(*parts)[0]


def test_a_word_that_is_longer_than_a_line_is_cut_in_its_middle():
    assert folded("a [very_long_parameter=1, b=2]", 12) == "a\n[very_…er=1,\nb=2]"


def test_labels():
    losses = {
        "base": "untuned",
        "ntil": "NTIL",
        "smmd[sigma=1]": "SMMD[sigma=1]",
        "my_own_loss": "my_own_loss",
        "ours": "ours",
        "numeric_ce[support=numeric]": "CE at numbers[support=numeric]",
        "brier": "Brier",
        "cramer": "Cramér",
        "nl_ntl": "NL-NTL",
    }
    assert {loss: loss_label(loss) for loss in losses} == losses

    models = {
        "builtin/tiny": "builtin/tiny",
        "Qwen/Qwen2.5-0.5B": "Qwen2.5-0.5B",
        "/data/llama/": "llama",
    }
    assert {model: model_label(model) for model in models} == models


def _settings(parameters):
    # it asks pyplot
    return {name: parameters[name] for name in parameters if name != "backend"}


def test_figures_need_no_pyplot_and_leave_no_settings_behind(monkeypatch):
    import matplotlib

    # Another test may have loaded it: a package of reasoning_gym does.
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    colours = matplotlib.cycler(color="r")
    changes = {"font.size": 30, "text.usetex": True, "axes.prop_cycle": colours}
    with matplotlib.rc_context(changes):
        settings = _settings(matplotlib.rcParams)
        with figure_style():
            new_figure().subplots()
            assert not matplotlib.rcParams["text.usetex"]
            cycle = matplotlib.rcParams["axes.prop_cycle"]
            assert cycle == matplotlib.rcParamsDefault["axes.prop_cycle"]
        assert _settings(matplotlib.rcParams) == settings

    assert "matplotlib.pyplot" not in sys.modules


def draw_legend(labels):
    """A narrow figure with curves of these labels; the figure and its legend."""
    figure = new_figure(NARROW, 2)
    axes = figure.subplots()
    for label in labels:
        axes.plot([0, 1], label=label)
    add_legend(figure)
    with figure_style():
        figure.draw_without_rendering()

    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1
    return legend


def test_a_legend_is_read_in_rows_and_never_leaves_its_figure():
    labels = ["untuned", "cross-entropy", "NTL", "SMMD"]
    legend = draw_legend(labels)
    places = []
    for text in legend.get_texts():
        box = text.get_window_extent()
        places.append((-round(box.y0), box.x0, text.get_text()))

    places.sort()
    rows = {row for row, *_ in places}
    assert len(rows) == 2
    assert [text for *_, text in places] == labels


def test_a_label_that_is_wider_than_its_figure_is_cut_in_the_middle():
    label = "completions of the large model with the new prompt, " * 3 + "run 17"
    assert shortened(label, 20) == label[:10] + "…" + label[-9:]
    (text,) = draw_legend([label]).get_texts()
    drawn = text.get_text()
    assert len(drawn) < len(label)
    assert drawn == shortened(label, len(drawn))
