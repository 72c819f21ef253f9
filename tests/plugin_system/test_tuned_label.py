"""The spelling of a tuned loss."""

import pytest

from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_loss
from smmd_bench.plugin_system.tuned_label import is_tuned, tuned_label, untuned_label


@pytest.mark.parametrize("loss", ["ce", "smmd[sigma=1]", "smmd[kernel=random,term=mmd]"])
def test_a_label_says_what_was_tuned(loss):
    label = tuned_label(loss)
    assert is_tuned(label)
    assert not is_tuned(loss)
    assert untuned_label(label) == loss
    assert untuned_label(loss) == loss


def test_no_loss_can_be_asked_for_by_the_label_of_a_tuned_one():
    with pytest.raises(UserError, match="not of the form"):
        load_loss(tuned_label("smmd"))
