"""`benchmarks.reliability` in small: one architecture, few seeds, one engine in this process."""

import random
from dataclasses import replace

import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine

from benchmarks.families import make_base, train_family
from benchmarks.reliability import SETTINGS, recorded, run_adapters
from benchmarks.reliability_page import BEGIN, END, Measured, write_tables
from benchmarks.sabotages import SABOTAGES, attempts, known_alike, outcome

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore:Found missing adapter keys:UserWarning"),
]


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    root = tmp_path_factory.mktemp("reliability")
    base = make_base("qwen2", root / "base", steps=40)
    rate = {"learning_rate": 2e-3, "train_examples": 48}
    return train_family(base, root / "cells", ["ce", "smmd"], [0, 2], **rate)


@pytest.fixture(scope="module")
def session(family):
    with TransformersEngine().open(family.base, SETTINGS) as session:
        yield session


def test_every_checkpoint_has_all_others_as_rivals(family):
    for checkpoint in family.checkpoints.values():
        assert checkpoint.canary is not None
        others = {c.name for c in family.checkpoints.values()} - {checkpoint.name}
        assert {name for name, _ in checkpoint.canary.rivals} == {"base", *others}


def test_each_sabotage_is_caught_and_the_right_weights_pass(family, session, tmp_path):
    measured = Measured()
    with recorded() as seen:
        tried = attempts(family, tmp_path, "qwen2")
        run_adapters(family, tried, "qwen2", "transformers", session, seen, measured)
    assert measured.right["transformers", "LoRA"] == {"passed": 8}
    assert {name for name, *_ in measured.rows} == set(SABOTAGES)
    for (name, *_), counts in measured.rows.items():
        assert counts.total() == 2
        assert counts["missed"] == 0
        if name != "a zeroed tensor":
            assert counts["caught"] == 2, name
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_tables(page, measured, 2, ["--repeats", "2"], 60)
    text = page.read_text()
    assert "| LoRA | transformers | 8 | 0 |" in text
    assert "old" not in text
    assert text.endswith("after\n")


def test_an_outcome_can_be_a_miss(family, session, tmp_path):
    """Without a rule to catch it, a sabotage passes, and is not excused as indistinguishable."""
    wrong = SABOTAGES["the base instead of the adapter"](
        family, ("ce", 0, 2), tmp_path, random.Random(0)
    )
    assert not known_alike(family, wrong)
    assert outcome(session, wrong) == "caught"
    assert outcome(session, replace(wrong, canary=None)) == "passed"
