"""Completions from strangers: whatever they hold, they are scored, and shown as text."""

import json

import pytest

from smmd_bench.plugin_system.registry import load_task
from tests.in_process import call

TASK = "arithmetic[level=easy,operations=1]"
TEXTS = (
    "9" * 1_000_000, "-" * 500_000 + "1", "1e999999999", "1/0", "NaN", "\x00\x1b[31mred\x07",
    "\u202e12\u202c", "</script><script>alert(1)</script>", "\ud800 alone", "=cmd|' /C calc'!A0",
    "$\\input{/etc/passwd}$", "{{ 7 * 7 }}",
)  # fmt: skip


@pytest.mark.slow
def test_hostile_completions_are_scored_and_shown_as_text(tmp_path):
    examples = load_task(TASK).examples("test", 0, len(TEXTS))
    rows = [{"uid": e.uid, "completion": t} for e, t in zip(examples, TEXTS, strict=True)]
    lines = "\n".join(map(json.dumps, rows))
    (tmp_path / "theirs.jsonl").write_text(lines)
    words = f"score --task {TASK} --predictions theirs.jsonl --limit {len(TEXTS)} --out run"
    said = call(words.split(), tmp_path)
    assert said.status == 0
    assert "\x1b[31m" not in said.output
    page = (tmp_path / "run" / "reports" / "index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    for number, expected in ((5, "\\x1b[31mred\\x07"), (6, "\\x202e12\\x202c")):
        shown = call(["show", "run", "--uid", examples[number].uid], tmp_path)
        assert expected in shown.output
        assert "\x1b[31m" not in shown.output


def test_a_file_that_is_no_text_is_the_users_error(tmp_path):
    (tmp_path / "theirs.jsonl").write_bytes(b'{"uid": "test-0-0", "completion": "\xff\xfe"}')
    words = f"score --task {TASK} --predictions theirs.jsonl --limit 1 --out run"
    with pytest.raises(Exception, match=r"theirs\.jsonl"):
        call(words.split(), tmp_path)
    assert not (tmp_path / "run").exists()
