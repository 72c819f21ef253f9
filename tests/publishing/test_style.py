import sys

from smmd_bench.plugin_system.registry import names
from smmd_bench.publishing.style import (
    NARROW,
    add_legend,
    figure_style,
    loss_label,
    loss_styles,
    model_label,
    new_figure,
    shortened,
)

OWN = ["base", *names("losses")]


def test_every_loss_of_the_package_has_a_style_that_no_other_has():
    known = loss_styles(OWN)
    own = loss_styles([f"own{at}" for at in range(6)])
    assert loss_styles(["smmd"])["smmd"] == known["smmd"]
    assert not {style.marker for style in own.values()} & {"<", ">"}  # arrows say: cut off
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


def test_a_legend_is_read_in_rows_and_never_leaves_its_figure():
    labels = ["untuned", "cross-entropy", "NTL", "SMMD"]
    long = "completions of the large model with the new prompt, " * 3 + "run 17"
    assert shortened(long, 20) == long[:10] + "…" + long[-9:]
    for shown in (labels, [long]):
        figure = new_figure(NARROW, 2)
        axes = figure.subplots()
        for label in shown:
            axes.plot([0, 1], label=label)
        add_legend(figure)
        with figure_style():
            figure.draw_without_rendering()
            (legend,) = figure.legends
            box = legend.get_window_extent()
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        places = [(round(t.get_window_extent().y0), t.get_window_extent().x0, t.get_text())
                  for t in legend.get_texts()]  # fmt: skip
        read = [text for *_, text in sorted(places, key=lambda place: (-place[0], place[1]))]
        assert len({y for y, *_ in places}) == len(shown) // 2 or shown == [long]
        assert read == (labels if shown == labels else [shortened(long, len(read[0]))])
