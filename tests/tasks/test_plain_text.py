"""What nobody sees in a completion changes neither its answer nor its score, in any task."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.contracts import plain_text
from smmd_bench.plugin_system.registry import load_task

WRITTEN: Mapping[str, tuple[list[str], str]] = {  # completions, and a target
    "arithmetic": (["-2/3", " 1,234\nEvaluate 3 - 4.", "3 / 4", "18.", "none"], "-2/3"),
    "gsm8k": (
        [" 3 / 4 of 12 = 9\nso $9 a day.\n#### 9", "#### 1,234\n\nQuestion: 1 + 1?", "it is 3 / 4",
         "#### - 5", "no number"],
        " #### 9",
    ),
    "svamp": (["#### 51", " it is 3 / 4", "51 or 52"], " #### 51"),
    "clock_time": ([" 1:05", "It is 12:50 now.\nor 3:00", "seven"], " 1:05"),
    "chartqa": ([" 0.57", "12 million", "3 / 4\nQuestion: 8?", "$1,234.5 in 2019"], " 0.57"),
    "samsum": (
        [" Ole is going to feed the hens.", "Ole feeds\nthe hens.\n\nSummarize the dialogue.", ""],
        " Ole is going to feed the hens.",
    ),
}  # fmt: skip
BY_LM_EVAL = {"strict", "flexible", "relaxed_lm_eval"}  # whose rules take a text as it is
BEFORE = st.text("\n\ufeff\u00a0 \t\r\u200b\u200e\u202b\u2066\u00ad", max_size=6)
THOUGHTS = (
    *(
        "<think>\n{}\n</think>\n\n",
        "<THINKING>{}</THINKING>",
        "[THINK]{}[/THINK]",
        "◁think▷{}◁/think▷",
    ),
    *("{}</think>\n", "<|im_start|>assistant\n<think>{}</think>", "<seed:think>{}</seed:think>"),
    "<|begin_of_thought|>{}<|end_of_thought|>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
)
ENDS = (
    *("</s>", "<|im_end|>\n4", "<eos><eos>", "<|eot|>", "<|end_of_turn|>", "<end_of_turn>\n5"),
    *("[EOS]", "<\uff5cend\u2581of\u2581sentence\uff5c>", " <pad><pad>", "<unk>", "[SEP] [PAD]"),
    *("<eoa>\n", " [end of text]", "[|endofturn|]", "<|endoftext|>Question: 4"),
)
BEGINS = (
    *("<s> ", "<bos>", "<pad>", "[CLS] ", "<|begin_of_text|>", "<|im_start|>assistant\n"),
    *("<start_of_turn>model\n", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
)
AFTER = st.sampled_from(["", "\n", "\r\n\r\n", "\u00a0", *ENDS])
SPACES = st.sampled_from([" ", "\u00a0", "\u202f", "\u2007"])


KEPT = [
    *("[5]", "[1, 2]", "[x]", "[A]", "<5>", "x < 3 > 2", r"\boxed{5}", "if x<y", "<3", "5 >"),
    *("<answer>5</answer>", "I think 7", "<b>5</b> apples", "assistant 5"),
]


def read(task, completion, target):
    found = task.annotate(completion, target) if hasattr(task, "annotate") else {}
    return task.parse(completion), {k: v for k, v in found.items() if k not in BY_LM_EVAL}


@pytest.mark.parametrize("name", WRITTEN)
@given(before=BEFORE, after=AFTER, space=SPACES, line_end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_blank_lines_line_ends_and_spaces_change_nothing(name, before, after, space, line_end):
    task, (completions, target) = load_task(name), WRITTEN[name]
    for text in completions:
        spelled = before + text.replace(" ", space).replace("\n", line_end) + after
        assert read(task, spelled, target) == read(task, text, target)


@pytest.mark.parametrize("thought", THOUGHTS)
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_thought_is_no_answer(name, thought):
    task, (completions, target) = load_task(name), WRITTEN[name]
    thinking = thought.format("Is it #### 7? Or 3:15?")
    for text in completions:
        assert read(task, thinking + text, target) == read(task, text, target)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_thought_that_does_not_end_has_no_answer(name):
    task, (completions, target) = load_task(name), WRITTEN[name]
    for text in completions:
        assert read(task, f"<think>\n{text}", target) == read(task, "", target)


def test_a_parameter_of_the_task_lets_thoughts_count():
    text = "<think>\nIt is 12:50.\n</think>\n1:05"
    assert load_task("clock_time").parse(text).value == 65
    assert load_task("clock_time[reasoning=true]").parse(text).value == 770
    assert load_task("gsm8k[reasoning=true]").parse("#### 7 </think> 8").value == 7


def test_lm_evals_rules_take_the_thoughts_too():
    by_lm_eval = load_task("gsm8k").annotate("<think>#### 7</think> #### 8", "#### 8")
    assert by_lm_eval == {"strict": False, "flexible": True}


def test_characters_that_are_not_seen_change_no_number():
    for letter in "\u200e\u200f\u202a\u202d\u2066\u00ad\u061c\ufeff":
        assert plain_text(f"{letter}-12{letter}/13{letter}") == "-12/13"


def test_plain_text_of_plain_text_is_the_same():
    text = "\ufeff\r\n 12\u00a0000\u202f000\r km in 2020\u00a0100 of\u20095000 </s> more"
    assert plain_text(text) == plain_text(plain_text(text)) == "12,000,000\n km in 2020 100 of 5000"
    assert plain_text(" a\n\nb ") == "a\n\nb"
    for begin in ("", *BEGINS):
        assert {plain_text(f"{begin}8/15{end}") for end in ("", *ENDS)} == {"8/15"}
    assert [plain_text(text) for text in KEPT] == KEPT
