"""Twelve cells made on a cluster that loses nodes, and by several processes, one of them killed."""

import pytest

from benchmarks.cluster import NODES_KILLED, measure

pytest.importorskip("ray")
pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(2400)]


def test_reports_are_those_of_one_process_and_no_whole_epoch_is_trained_twice(tmp_path):
    seen = measure(tmp_path, train_examples=64, test_examples=20, engine="transformers")
    for way, killed in (("local", 0), ("ray", NODES_KILLED), ("work", 1)):
        told = seen[way]
        assert told.pop("seconds") > 0
        assert told.pop("reports") > 40
        assert told == {
            "trainings": 14, "begun_again": killed, "epochs_trained_twice": 0,
            "differ": [], "processes_left": 0,
        }, way  # fmt: skip
