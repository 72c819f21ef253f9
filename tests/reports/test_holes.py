"""Tables with a column a loss: a loss without any result, and more losses than fit."""

from smmd_bench.reports._columns import LOSSES, losses_with_columns
from smmd_bench.reports.scale_errors import ScaleErrors

from tests.changed_runs import NO_MEMORY, without
from tests.reports.golden import words
from tests.runs import quick_run


def test_a_loss_without_a_result_has_a_column_that_says_why(tmp_path):
    run = quick_run(tmp_path / "run", tasks=("arithmetic",))
    lost = without(run, tmp_path / "lost", failure=NO_MEMORY, loss="ntl")
    for report in (ScaleErrors(),):
        whole, table = report.build(run).table, report.build(lost).table
        assert list(table["NTL"]) == ["failed in train", *["–"] * (len(table) - 1)]
        assert list(table["SMMD"]) == list(whole["SMMD"])


def test_at_most_so_many_losses_have_columns_the_papers_first():
    every = ["base", "ce", "gce", "ntl", "smmd[sigma=1]", "ntil", "dist2", "smmd"]
    shown, note = losses_with_columns(every)
    assert shown == ["ce", "gce", "ntl", "ntil", "dist2", "smmd"]
    assert len(shown) == LOSSES
    assert note.endswith("CSV of the data: untuned, SMMD[sigma=1].")
    assert losses_with_columns(every[:4]) == (every[:4], "")


def test_the_csv_has_the_losses_that_have_no_column(tmp_path):
    losses = ("ce", "gce", "ntl", "ntil", "smmd", "smmd[sigma=1]")
    run = quick_run(tmp_path, losses=losses)
    for report in (ScaleErrors(),):
        artefact = report.build(run)
        assert "untuned" not in artefact.table
        assert "base" in set(artefact.data["loss"])
        assert " data: untuned." in words(artefact)
