"""Whether a completion is its target's text, where normalisation never touches a target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smmd_bench as sb
from smmd_bench.scoring.text_match import match_texts


def matched(text: str, target: str, *others: str) -> bool:
    """Whether a completion matches a target of a data set that has other targets, too."""
    return match_texts([text, *others], [target, *others])[0]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[POSITIVE]", "[NEGATIVE]"),
        ("cat [MASK]", "cat [SEP]"),
        ("cat", "cat [SEP]"),
        ("<|yes|>", "<|no|>"),
        ("<pad>", "<unk>"),
        ("a\u00adb", "ab"),
        ("12\u00a0500", "12,500"),
        ("<think>a</think>", "<think>b</think>"),
    ],
)
def test_two_targets_are_never_equal(right, wrong):
    assert matched(right, right, wrong)
    assert matched(f" {right}\n", right, wrong)
    assert not matched(wrong, right, wrong)
    assert not matched(right, wrong, right)


def test_labels_in_brackets_need_their_letters():
    labels = ("[POSITIVE]", "[NEGATIVE]")
    assert not matched("", *labels)
    assert not matched("[OTHER]", *labels)
    assert not matched("POSITIVE", *labels)
    assert matched("[POSITIVE]<|im_end|>", *labels)
    assert matched("<think>good?</think>[POSITIVE]</s>", *labels)


def test_what_nobody_sees_is_taken_off_a_completion():
    for text in ("Yes", " Yes\r\n", "\ufeffYes</s>", "Yes<|im_end|>\nNo", "<think>No</think>\nYes"):
        assert matched(text, "Yes", "No")
        assert not matched(text, "No", "Yes")
    assert not matched("<think>No", "No", "Yes")


def test_a_target_keeps_its_own_signs():
    assert matched("cat [MASK]", "cat [MASK]", "dog")
    assert not matched("cat", "cat [MASK]", "dog")


@given(st.lists(st.text("ab [MASK]<|s>\u00ad\u00a0/", min_size=1), min_size=1, max_size=6))
def test_a_target_matches_itself_and_no_other_one(targets):
    golds = [target.strip() for target in targets]
    for text in golds:
        matches = match_texts([text] * len(golds), targets)
        assert matches == [text == gold for gold in golds]


def test_the_scores_of_a_text_task_are_by_it():
    frame = sb.score("samsum", ["<think>b</think> a", "b"], ["a", "a"])
    assert frame["text_match"].tolist() == [True, False]
