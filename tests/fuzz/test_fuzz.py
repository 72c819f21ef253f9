"""Every kept input of each target, and changes of them: nothing but a UserError comes out."""

from __future__ import annotations

import io
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .corpus import CORPUS, files_of, smaller
from .targets import TARGETS, call

EXAMPLES = {"measures": 6, "page": 10, "tables": 20, "answers": 25, "cell": 25}
"""Changed inputs of slow targets; 60 of the others."""


def quick(examples: int) -> settings:
    """The same inputs at each call, without a limit on the time of one."""
    checks = list(HealthCheck)
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=checks,
    )


INPUTS = [(name, file) for name in TARGETS for file in files_of(name)]
PIECES = [
    b"", b"\x00", b"\xff", b'"', b"'", b"[", b"]", b"{", b"}", b"\\", b"\n", b"\r", b"null", b"-1",
    b"1e999", b"NaN", b"\\ud800", b"\xe2\x80\xa8", b"</script>", b"&a [*a]", b"!!int ''", b"..",
    b"/",    b"9" * 30, b"0x" + b"f" * 40, b"$", b"%", b"* ", b"=", b"\xd9\xa3", b"[" * 2_000,
]  # fmt: skip


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No model is looked for on the hub."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize(
    ("name", "file"), INPUTS, ids=[f"{name}-{file.name}" for name, file in INPUTS]
)
def test_a_kept_input(name, file):
    call(name, file.read_bytes())


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_changes_of_kept_inputs(name):
    assert files_of(name)

    @quick(EXAMPLES.get(name, 60))
    @given(changed_inputs(name))
    def check(data):
        call(name, data)

    check()


def changed_inputs(name: str) -> st.SearchStrategy[bytes]:
    """Inputs of the corpus with pieces cut out, doubled, put in, or exchanged for another's."""
    kept = [file.read_bytes() for file in files_of(name)]
    place = st.floats(0, 1)
    change = st.tuples(place, place, st.sampled_from(PIECES) | st.binary(max_size=8) | TEXTS)
    return st.builds(
        with_changes,
        st.sampled_from(kept),
        st.lists(change, min_size=1, max_size=4),
        st.sampled_from(kept),
        st.booleans(),
    )


TEXTS = st.text(max_size=12).map(str.encode)


def with_changes(
    data: bytes, changes: list[tuple[float, float, bytes]], other: bytes, spliced: bool
) -> bytes:
    """The input with a piece in place of each span; then joined to the end of another, or not."""
    for start, length, piece in changes:
        at = int(start * len(data))
        data = data[:at] + piece + data[at + int(length**4 * (len(data) - at)) :]
    return data[: len(data) // 2] + other[len(other) // 2 :] if spliced else data


COLUMNS = (
    "uid", "id", "doc_id", "custom_id", "completion", "response", "resps", "error", "target",
    "output", "filter", "finish_reason",
)  # fmt: skip
INNER = ("body", "choices", "message", "content", "text", "0")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(INNER), inner, max_size=2)
    ),
    max_leaves=5,
)
ROWS = st.dictionaries(st.sampled_from(COLUMNS), VALUES, max_size=4)


@quick(60)
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_rows_of_the_known_columns_with_any_values(rows):
    call("predictions_json", "\n".join(map(json.dumps, rows)).encode())


KINDS = [
    pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", tz="UTC"), pa.duration("us"),
    pa.time64("us"), pa.uint64(), pa.float64(), pa.int64(),
]  # fmt: skip


@quick(60)
@given(st.sampled_from(KINDS), st.integers(-(2**63), 2**63 - 1), st.sampled_from(["id", "other"]))
def test_any_eight_bytes_of_any_type_in_parquet(kind, number, name):
    column = pa.array([number], pa.int64()).view(kind)
    stream = io.BytesIO()
    pq.write_table(pa.table({name: column, "completion": ["1"]}), stream)
    call("predictions_parquet", stream.getvalue())


def test_every_folder_of_the_corpus_has_a_target():
    assert {folder.name for folder in CORPUS.iterdir()} == {*TARGETS}


def test_an_error_that_is_not_the_projects_own_escapes(monkeypatch):
    def fails(data):
        raise KeyError(data)

    monkeypatch.setitem(TARGETS, "answers", fails)
    with pytest.raises(KeyError):
        call("answers", b"")


def test_an_input_is_made_smaller_while_it_fails():
    data = b"some text <script> more text"
    assert smaller(data, lambda less: re.search(rb"<s", less) is not None) == b"<s"
