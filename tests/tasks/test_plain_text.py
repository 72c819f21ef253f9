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
# whose rules take a text as it is
BY_LM_EVAL = {"strict", "flexible", "relaxed_lm_eval"}
BEFORE = st.text("\n\ufeff\u00a0 \t\r\u200b", max_size=6)
ENDS = (
    *(
        "</s>",
        "<|im_end|>\n4",
        "<eos><eos>",
        "<|eot|>",
        "<|end_of_turn|>",
        "<end_of_turn>\n5",
    ),
    *(
        "[EOS]",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        " <pad><pad>",
        "<unk>",
        "[SEP] [PAD]",
    ),
    *("<eoa>\n", " [end of text]", "[|endofturn|]", "<|endoftext|>Question: 4"),
)
BEGINS = (
    *(
        "<s> ",
        "<bos>",
        "<pad>",
        "[CLS] ",
        "<|begin_of_text|>",
        "<|im_start|>assistant\n",
    ),
    *("<start_of_turn>model\n", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
)
AFTER = st.sampled_from(["", "\n", "\r\n\r\n", "\u00a0", *ENDS])
SPACES = st.sampled_from([" ", "\u00a0", "\u202f", "\u2007"])


KEPT = [
    *(
        "[5]",
        "[1, 2]",
        "[x]",
        "[A]",
        "<5>",
        "x < 3 > 2",
        r"\boxed{5}",
        "if x<y",
        "<3",
        "5 >",
    ),
    *("<answer>5</answer>", "<b>5</b> apples", "assistant 5"),
]


def read(task, completion, target):
    notes = task.annotate(completion, target) if hasattr(task, "annotate") else {}
    return task.parse(completion), {
        k: v for k, v in notes.items() if k not in BY_LM_EVAL
    }


@pytest.mark.parametrize("name", WRITTEN)
@given(
    before=BEFORE,
    after=AFTER,
    space=SPACES,
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_blank_lines_line_ends_and_spaces_change_nothing(
    name, before, after, space, line_end
):
    task, (completions, target) = load_task(name), WRITTEN[name]
    for text in completions:
        spelled = before + text.replace(" ", space).replace("\n", line_end) + after
        assert read(task, spelled, target) == read(task, text, target)


def test_plain_text_of_plain_text_is_the_same():
    text = (
        "\ufeff\r\n 12\u00a0000\u202f000\r km in 2020\u00a0100 of\u20095000 </s> more"
    )
    assert (
        plain_text(text)
        == plain_text(plain_text(text))
        == "12,000,000\n km in 2020 100 of 5000"
    )
    assert plain_text(" a\n\nb ") == "a\n\nb"

    for begin in ("", *BEGINS):
        assert {plain_text(f"{begin}8/15{end}") for end in ("", *ENDS)} == {"8/15"}
    assert [plain_text(text) for text in KEPT] == KEPT
