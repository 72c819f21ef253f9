import sys

import pytest

from smmd_bench.plugin_system.registry import names
from smmd_bench.publishing.style import (
    NARROW,
    SCALE,
    WIDTH,
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
PAPER = ["base", "ce", "gce", "ntl", "ntil", "smmd"]
OTHERS = [f"smmd[sigma={at}]" for at in range(6)]


@pytest.mark.parametrize("part", ["colour", "line", "marker"])
def test_no_two_of_twelve_losses_share_a_colour_a_line_or_a_marker(part):
    styles = loss_styles([*PAPER, *OTHERS]).values()
    assert len({getattr(style, part) for style in styles}) == 12
    assert loss_styles(["smmd"])["smmd"] == loss_styles(PAPER)["smmd"]


def test_every_loss_of_the_package_has_a_style_that_no_other_has():
    known = loss_styles(OWN)
    own = loss_styles([f"own{at}" for at in range(6)])
    assert not {style.colour for style in own.values()} & {s.colour for s in known.values()}
    for part in ("colour", "line", "marker", "hatch"):
        parts = [getattr(style, part) for style in {**known, **own}.values()]
        assert len(set(parts)) == len(parts), part


def test_labels():
    assert [loss_label(x) for x in ("base", "ntil", "smmd[sigma=1]", "my_own_loss", "ours")] == [
        "untuned", "NTIL", "SMMD[sigma=1]", "my_own_loss", "ours",
    ]  # fmt: skip
    labels = [loss_label(x) for x in ("numeric_ce[support=numeric]", "brier", "cramer", "nl_ntl")]
    assert labels == ["CE at numbers[support=numeric]", "Brier", "Cramér", "NL-NTL"]
    assert [model_label(x) for x in ("builtin/tiny", "Qwen/Qwen2.5-0.5B", "/data/llama/")] == [
        "builtin/tiny", "Qwen2.5-0.5B", "llama",
    ]  # fmt: skip


def test_a_label_breaks_between_parameters_and_not_within_a_number():
    title = "arithmetic[level=easy,operations=1..2]: 2,000 test examples"
    assert folded(title, 99) == "arithmetic [level=easy, operations=1..2]: 2,000 test examples"


def _settings(parameters):
    return {name: parameters[name] for name in parameters if name != "backend"}  # it asks pyplot


def test_figures_need_no_pyplot_and_leave_no_settings_behind():
    import matplotlib

    own = {"font.size": 30, "text.usetex": True, "axes.prop_cycle": matplotlib.cycler(color="r")}
    with matplotlib.rc_context(own):
        before = _settings(matplotlib.rcParams)
        with figure_style():
            new_figure().subplots()
            assert not matplotlib.rcParams["text.usetex"]
            cycle = matplotlib.rcParams["axes.prop_cycle"]
            assert cycle == matplotlib.rcParamsDefault["axes.prop_cycle"]
        assert _settings(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules


def test_text_is_readable_at_the_printed_size():
    import matplotlib

    with figure_style():
        points = [
            matplotlib.rcParams[f"{part}size"] for part in ("font.", "axes.label", "axes.title")
        ]
        assert matplotlib.rcParams["legend.fontsize"] / SCALE >= 6
    assert min(points) / SCALE >= 6
    printed = [width / SCALE for width in (NARROW, WIDTH)]
    assert printed == pytest.approx([3.25, 6.75])


def test_a_legend_that_needs_two_lines_is_read_in_rows():
    figure = new_figure(NARROW, 2)
    axes = figure.subplots()
    labels = ["untuned", "cross-entropy", "NTL", "SMMD"]
    for label in labels:
        axes.plot([0, 1], label=label)
    add_legend(figure)
    figure.draw_without_rendering()
    texts = [text.get_window_extent() for text in figure.legends[0].get_texts()]
    places = sorted(
        zip(texts, figure.legends[0].get_texts(), strict=True),
        key=lambda place: (-round(place[0].y0), place[0].x0),
    )
    assert [text.get_text() for _, text in places] == labels
    assert len({round(text.y0) for text in texts}) == 2


def test_a_long_label_keeps_its_start_and_end_and_no_legend_leaves_its_figure():
    label = "completions of the large model with the new prompt, " * 3 + "run 17"
    assert shortened(label, len(label)) == label
    assert shortened(label, 20) == label[:10] + "…" + label[-9:]
    figure = new_figure(NARROW, 3)
    axis = figure.subplots()
    axis.plot([0, 1], label=label)
    add_legend(figure)
    with figure_style():
        figure.draw_without_rendering()
        legend = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= legend.x0
    assert legend.x1 <= figure.bbox.x1
