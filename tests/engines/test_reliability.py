"""`benchmarks.canary` in small: one architecture, two seeds, one engine in this process."""

from dataclasses import replace

import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine

from benchmarks.canary import (
    SABOTAGES,
    SETTINGS,
    attempts,
    make_base,
    outcome,
    train_family,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:Found missing adapter keys:UserWarning"),
]


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    root = tmp_path_factory.mktemp("canary")
    base = make_base("qwen2", root / "base", steps=40)
    rate = {"learning_rate": 2e-3, "train_examples": 48}
    return train_family(base, root / "family", ["ce", "smmd"], [0, 2], **rate)


def test_every_checkpoint_has_all_others_as_rivals(family):
    names = {c.name for c in family.checkpoints.values()}
    for checkpoint in family.checkpoints.values():
        assert checkpoint.canary is not None
        rivals = {name for name, _ in checkpoint.canary.rivals}
        assert rivals == {"base", *names} - {checkpoint.name}


def test_each_sabotage_is_caught_and_the_right_weights_pass(family, tmp_path):
    sabotaged = attempts(family, tmp_path, "qwen2")
    assert [name for name, *_ in sabotaged] == [*SABOTAGES, *SABOTAGES]
    with TransformersEngine().open(family.base, SETTINGS) as session:
        # all pass
        assert {outcome(session, c) for c in family.checkpoints.values()} == {"passed"}
        for name, wrong, alike in sabotaged:
            expected = {"caught"}
            if name == "a zeroed tensor":
                expected.add("indistinguishable")
            assert outcome(session, wrong, alike=alike) in expected, name

        _, base, alike = sabotaged[0]
        assert not alike
        assert outcome(session, replace(base, canary=None)) == "passed"
