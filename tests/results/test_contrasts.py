"""Two losses of one run against each other."""

import pytest

from smmd_bench.errors import UserError
from smmd_bench.results.contrasts import contrasts
from smmd_bench.scoring.crossed import fit, t_interval
from smmd_bench.scoring.gain import gain_of, holm
from tests.in_process import call
from tests.runs import quick_run
from tests.tuned_runs import tuned_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    losses = ("ce", "gce", "ntl", "smmd")
    return quick_run(tmp_path_factory.mktemp("run"), losses=losses, seeds=(0, 1, 2), n=60)


def test_against_cross_entropy_it_is_what_the_tables_say(run):
    (row,) = contrasts(run, ["smmd", "ce"], resamples=20).to_dict("records")
    known = run.comparisons.query("loss == 'smmd' and metric == 'exact_match'")
    gain = gain_of(known)
    for name in ("difference", "low", "high", "p", "seeds", "n"):
        assert row[name] == pytest.approx(gain[name])


def test_any_two_losses_are_paired_by_example_and_seed(run):
    (row,) = contrasts(run, ["smmd", "ntl"], resamples=20).to_dict("records")
    wide = run.completions.pivot_table("exact", ["seed", "uid"], "loss", observed=True)
    table = 100 * (wide["smmd"] - wide["ntl"]).unstack("uid").to_numpy()
    assert row["difference"] == pytest.approx(table.mean())
    model = fit(table)
    interval = t_interval(table.mean(), model.error, model.df)
    assert (row["low"], row["high"]) == pytest.approx(interval)
    assert (row["loss"], row["against"], row["seeds"]) == ("smmd", "ntl", 3)


def test_p_is_corrected_over_the_others(run):
    found = contrasts(run, ["smmd", "ntl", "gce"], resamples=20)
    assert found["p_holm"].tolist() == pytest.approx(holm(found["p"]))
    alone = contrasts(run, ["smmd", "ntl"], resamples=20)
    assert alone["smallest"].iloc[0] < found["smallest"].iloc[0]


def test_the_untuned_base_is_paired_with_every_seed(run):
    (row,) = contrasts(run, ["smmd", "base"], resamples=20).to_dict("records")
    assert row["seeds"] == 3
    assert row["difference"] > 0


def test_all_metrics_can_be_asked_for(run):
    found = contrasts(run, ["smmd", "ce"], "all", resamples=20)
    assert {"exact_match", "mean_absolute_error", "r_squared"} <= {*found["metric"]}


def test_what_the_run_lacks_is_named(run, tmp_path):
    with pytest.raises(UserError, match="no loss 'smmmd': did you mean smmd"):
        contrasts(run, ["smmmd", "ce"])
    with pytest.raises(UserError, match="Unknown metric 'exact_matc': did you mean exact_match"):
        contrasts(run, ["smmd", "ce"], "exact_matc")
    with pytest.raises(UserError, match="names smmd alone"):
        contrasts(run, ["smmd", "smmd"])
    quick_run(tmp_path, losses=("ce",), seeds=(1,))
    quick_run(tmp_path, losses=("ce", "smmd"), seeds=(0,), base=False)
    other = quick_run(tmp_path, losses=("ntl",), seeds=(2,), base=False)
    found = contrasts(other, ["smmd", "ce", "ntl", "ce"], resamples=20)
    assert found["seeds"].tolist() == [1]
    assert found.attrs["left_out"] == ["ntl"]
    with pytest.raises(UserError, match="for the same seed"):
        contrasts(other, ["smmd", "ntl"], resamples=20)


def test_what_tuning_gains_can_be_asked(tmp_path):
    tuned = tuned_run(tmp_path)
    found = contrasts(tuned, ["smmd[tuned]", "smmd", "ce[tuned]"], resamples=20)
    assert found["against"].tolist() == ["smmd", "ce[tuned]"]
    assert found["seeds"].tolist() == [2, 2]
    (other,) = contrasts(tuned, ["smmd", "smmd[tuned]"], resamples=20).to_dict("records")
    assert other["difference"] == -found["difference"].iloc[0]


def test_one_difference_is_one_table_on_a_terminal_of_80_columns(tmp_path):
    task = "arithmetic[level=medium,operations=1..2]"
    quick_run(tmp_path, tasks=(task,), losses=("ntl", "smmd"))
    words = ["compare", str(tmp_path), "--losses", "smmd,ntl"]
    said = call(words, tmp_path, COLUMNS="80").stdout
    assert sum(line.startswith("Against ") for line in said.splitlines()) == 1
    assert f"Task {task} ·" in said
