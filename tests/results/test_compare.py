"""Two runs beside each other, and two losses of one run."""

import json
import re
import shutil

import pandas as pd
import pytest
from scipy.stats import binomtest, t

import smmd_bench as sb
from smmd_bench.results.compare import compare_runs, contrasts
from smmd_bench.scoring.crossed import fit
from smmd_bench.scoring.gain import gain_of, holm
from tests.changed_runs import changed
from tests.conftest import expect_user_error
from tests.in_process import call
from tests.runs import quick_run, write_measured, write_run


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The second run has the same cells with the answers of `smmd` where the first has `ntl`'s."""
    root = tmp_path_factory.mktemp("runs")
    a, b = root / "a", root / "b"
    write_run(a, losses=("ce", "ntl", "smmd"), seeds=(0,))
    shutil.copytree(a, b)
    run = sb.read_run(b)
    cells = run.cells.set_index("loss")["address"]
    smmd = run.current(cells["smmd"])
    ntl = run.current(cells["ntl"])
    frames = [
        pd.read_parquet(smmd.place(name))
        for name in ("completions", "probes", "scores")
    ]
    write_measured(ntl, *frames, smmd.metrics)
    shutil.rmtree(smmd.measured)

    def longer(cell):
        return {**cell, "recipe": {**cell["recipe"], "epochs": 99}}

    changed(run, b, "cell", longer, loss="ntl")
    return a, b


def test_what_is_equal_has_no_difference_and_what_changed_has_the_paired_one(pair):
    a, b = (sb.read_run(path) for path in pair)
    rows = compare_runs(a, b).rows
    assert [*rows["loss"]] == ["base", "ce", "ntl"]
    assert set(rows["metric"]) == {"exact_match"}
    _, ce, ntl = rows.itertuples()
    assert ce.difference == 0
    assert ce.p == 1

    exact = a.metrics.query("metric == 'exact_match'")
    values = exact.set_index("loss")["value"]
    assert ntl.a == values["ntl"]
    assert ntl.b == values["smmd"]
    assert ntl.difference == pytest.approx(ntl.b - ntl.a)
    assert ntl.low < ntl.difference < ntl.high

    wide = a.completions.pivot(index="uid", columns="loss", values="exact")
    is_won = wide["smmd"] > wide["ntl"]
    is_lost = wide["smmd"] < wide["ntl"]
    won, lost = is_won.sum(), is_lost.sum()
    p = binomtest(won, won + lost).pvalue
    assert ntl.p == pytest.approx(p)


def test_what_only_one_run_has_and_other_settings_are_said(pair):
    result = compare_runs(*map(sb.read_run, pair))
    assert result.only_a == ["builtin/tiny arithmetic[operations=1..2] smmd seed 0"]
    assert result.only_b == []
    assert any(re.search("epochs.*99", sentence) for sentence in result.settings)


def test_other_examples_are_not_paired_and_those_of_a_metric_without_a_value_are(
    pair, tmp_path
):
    first = write_run(tmp_path, losses=("ce",), seeds=(0,), n=1)
    unchanged = compare_runs(first, first, "all")
    # one example has no R2
    assert unchanged.rows["n"].isna().any()
    assert unchanged.unpaired == []

    results = compare_runs(sb.read_run(pair[0]), first)
    (sentence,) = results.unpaired
    assert sentence == (
        "the two runs did not answer the same examples of arithmetic[operations=1..2]"
    )

    rows = results.rows
    assert rows["difference"].notna().all()
    assert rows[["low", "high", "n", "p"]].isna().all(axis=None)


def test_mistakes_are_one_sentence(pair, tmp_path):
    a, b = (sb.read_run(path) for path in pair)
    with expect_user_error(r"Unknown metric 'exactmatch'.*exact_match"):
        compare_runs(a, b, "exactmatch")
    write_run(tmp_path, tasks=("halving",), seeds=(0,))
    with expect_user_error("share no measured cell"):
        compare_runs(a, sb.read_run(tmp_path))


def test_the_command_prints_a_table_and_json(pair, tmp_path):
    a, b = pair
    output = call(f"compare {a} {b}", tmp_path, COLUMNS="80")
    assert output.status == 0, output.output
    assert "B − A" in output.stdout
    assert "Differs:" in output.stdout

    text = call(f"compare {a} {b} --metric all --json", tmp_path).stdout
    rows = json.loads(text)["rows"]
    p = {row["metric"]: row["p"] for row in rows if row["loss"] == "ce"}
    assert p["exact_match"] == 1
    assert p["mean_absolute_error"] == 1  # by the resamples: none differs

    text = call(f"compare {a} --losses smmd,ntl --json", tmp_path).stdout
    (row,) = json.loads(text)["rows"]
    names = [row[name] for name in ("loss", "against", "metric")]
    assert names == ["smmd", "ntl", "exact_match"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    losses = ("ce", "gce", "ntl", "smmd")
    return quick_run(
        tmp_path_factory.mktemp("run"), losses=losses, seeds=(0, 1, 2), n=60
    )


def test_against_cross_entropy_it_is_what_the_tables_say(run):
    (row,) = contrasts(run, ["smmd", "ce"], resamples=20).to_dict("records")
    in_tables = run.paired.query("loss == 'smmd' and metric == 'exact_match'")
    gain = gain_of(in_tables)
    for name in ("difference", "low", "high", "p", "seeds", "n"):
        assert row[name] == pytest.approx(gain[name])


def test_any_two_losses_are_paired_by_example_and_seed(run):
    (row,) = contrasts(run, ["smmd", "ntl"], resamples=20).to_dict("records")
    assert row["loss"] == "smmd"
    assert row["against"] == "ntl"
    assert row["seeds"] == 3

    wide = run.completions.pivot_table("exact", ["seed", "uid"], "loss", observed=True)
    by_example = 100 * (wide["smmd"] - wide["ntl"])
    table = by_example.unstack("uid").to_numpy()
    mean = table.mean()
    model = fit(table)
    interval = t.interval(0.95, model.df, mean, model.error)
    assert row["difference"] == pytest.approx(mean)
    assert (row["low"], row["high"]) == pytest.approx(interval)


def test_p_is_corrected_over_the_others(run):
    contrast = contrasts(run, ["smmd", "ntl", "gce"], resamples=20)
    assert contrast["p_holm"].tolist() == pytest.approx(holm(contrast["p"]))
    alone = contrasts(run, ["smmd", "ntl"], resamples=20)
    assert alone["smallest"].iloc[0] < contrast["smallest"].iloc[0]


def test_what_the_run_lacks_is_named(run, tmp_path):
    with expect_user_error("no loss 'smmmd': did you mean smmd"):
        contrasts(run, ["smmmd", "ce"])
    with expect_user_error("Unknown metric 'exact_matc': did you mean exact_match"):
        contrasts(run, ["smmd", "ce"], "exact_matc")
    with expect_user_error("finds smmd alone"):
        contrasts(run, ["smmd", "smmd"])
    quick_run(tmp_path, losses=("ce",), seeds=(1,))
    quick_run(tmp_path, losses=("ce", "smmd"), seeds=(0,), base=False)
    other = quick_run(tmp_path, losses=("ntl",), seeds=(2,), base=False)
    contrast = contrasts(other, ["smmd", "ce", "ntl", "ce"], resamples=20)

    assert contrast["seeds"].tolist() == [1]
    assert contrast.attrs["left_out"] == ["ntl"]
    with expect_user_error("for the same seed"):
        contrasts(other, ["smmd", "ntl"], resamples=20)


def test_runs_with_a_chat_template_and_without_answered_the_same_examples(
    pair, tmp_path
):
    """The prompts of a chat template are stored without the blanks that it does not get."""

    def as_turns(completions):
        return completions.assign(prompt=completions["prompt"].str.strip())

    plain = sb.read_run(pair[0])
    chat = changed(plain, tmp_path / "chat", "completions", as_turns)
    prompts = [run.completions["prompt"] for run in (plain, chat)]
    assert not prompts[0].equals(prompts[1])
    assert compare_runs(plain, chat).unpaired == []
