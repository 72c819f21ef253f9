"""Chat templates that cannot write a user's turn, and texts that no file can hold."""

import json

import pytest
import transformers

from smmd_bench.contracts import Answer, Example
from smmd_bench.encoding.prompts import encode_prompts
from smmd_bench.plugin_system.checked_task import take_examples
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring.score import value_of
from smmd_bench.storage.text_rows import read_rows

from ..conftest import DATA, expect_user_error


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{% for m in messages %}{{ m.content }}", "cannot write a user's turn"),
        ("{{ messages[0].content + 1 }}", "cannot write a user's turn"),
        ("\ud83d{{ messages[0].content }}", "surrogates not allowed"),
        ({"rag": "{{ 1 }}", "tools": "{{ 2 }}"}, "no default"),
    ],
)
def test_a_chat_template_that_fails_is_named(template, words):
    folder = next((DATA / "tokenizers").glob("*/tokenizer_config.json")).parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = template
    with expect_user_error(f"The chat template of .*{words}"):
        encode_prompts(tokenizer, ["1 + 1"], chat=True)


class Broken:
    """A task of which nothing can be read."""

    name = "broken"

    def examples(self, split, seed, limit=None):
        if split == "train":
            raise ValueError("could not convert string to float: 'x'")
        return [Example("a", "1 + 1? \ud83d", "2", Answer(2))]

    def parse(self, completion):
        return Answer(int(completion))


def test_what_a_task_raises_while_it_reads_is_named():
    with expect_user_error(r"broken.examples\('train'\) raises ValueError \(could not"):
        take_examples(Broken(), "train", 0)
    with expect_user_error("broken, 'a': its prompt or target holds half a surrogate"):
        take_examples(Broken(), "test", 0)
    with expect_user_error(r"broken.parse raises ValueError .* for 'two'"):
        value_of(Broken(), "two")


@pytest.mark.parametrize("text", [r"\ud83d8", r"8\udc00", r"\udc00\ud83d"])
def test_half_a_surrogate_pair_in_a_file_is_named_with_its_row(tmp_path, text):
    rows = [
        '{"question": "a \\ud83d\\ude00", "answer": 1}',
        f'{{"question": ["{text}"]}}',
    ]
    for name, content in (
        ("a.jsonl", "\n".join(rows)),
        ("a.json", f"[{', '.join(rows)}]"),
    ):
        (tmp_path / name).write_text(content)
        with expect_user_error("row 2 holds half a surrogate pair"):
            read_rows(tmp_path / name)

    (tmp_path / "table.jsonl").write_text("\n".join(rows))
    with expect_user_error("row 2 holds half a surrogate pair"):
        take_examples(load_task(f"table[path={tmp_path / 'table.jsonl'}]"), "test", 0)
    assert json.loads(rows[0])["question"].endswith("\U0001f600")
