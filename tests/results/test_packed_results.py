"""scripts/pack_results.py: an archive of a run's results, without weights."""

import tarfile

import pandas as pd

import smmd_bench as sb
from scripts.pack_results import pack
from tests.runs import quick_run


def test_an_unpacked_run_says_what_the_run_says(tmp_path):
    run = quick_run(tmp_path / "run")
    pack(run.path, tmp_path / "run.tar.xz")
    with tarfile.open(tmp_path / "run.tar.xz") as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    unpacked = sb.read_run(tmp_path / "unpacked" / "run")
    assert len(unpacked.completions)
    for name in ("cells", "metrics", "completions", "comparisons", "train_log"):
        pd.testing.assert_frame_equal(getattr(unpacked, name), getattr(run, name))


def test_an_archive_has_no_weights_and_no_probes(tmp_path):
    run = quick_run(tmp_path / "run")
    assert len(run.probes)
    pack(run.path, tmp_path / "run.tar.xz")
    with tarfile.open(tmp_path / "run.tar.xz") as tar:
        assert {name.rpartition(".")[2] for name in tar.getnames()} == {"json", "parquet"}
        tar.extractall(tmp_path, filter="data", members=[m for m in tar if "probes" in m.name])
    assert not len(sb.read_run(run.path).probes)
