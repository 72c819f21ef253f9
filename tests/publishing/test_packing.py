"""The examples of the page, packed and unpacked."""

from __future__ import annotations

import json

import pytest

import smmd_bench as sb
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.packing import columns, pack, unpack


@pytest.fixture(scope="module")
def examples(run_folder):
    return embedded_examples(sb.read_run(run_folder))


def rows_of(packed):
    """The rows again, as `examples.js` reads them."""
    texts, start, rows = packed["texts"], 0, []
    for at, exact in enumerate(packed["exact"]):
        answers = [texts[place] for place in packed["answers"][start : start + len(exact)]]
        start += len(exact)
        prompt, target = texts[packed["prompt"][at]], texts[packed["target"][at]]
        rows.append(
            [
                packed["group"][at], prompt, target, answers,
                packed["category"][at], exact, packed["differing"][at],
            ]
        )  # fmt: skip
    assert start == len(packed["answers"])
    return rows


def test_columns_hold_all_rows_and_every_text_once(examples):
    packed = columns(examples)
    assert rows_of(packed) == examples["rows"]
    assert len(packed["texts"]) == len(set(packed["texts"]))


@pytest.mark.parametrize(("large", "kind"), [(10**9, "application/json"), (10, "application/gzip")])
def test_what_is_packed_is_unpacked(examples, large, kind):
    said, text = pack(examples, large)
    assert said == kind
    unpacked = unpack(said, text)
    assert rows_of(unpacked) == examples["rows"]
    assert unpacked["groups"] == examples["groups"]


@pytest.mark.parametrize("large", [10**9, 10])
def test_the_text_is_safe_inside_html_and_always_the_same(examples, large):
    hostile = {**examples, "labels": {"ce": "</script><!-- & 漢"}}
    _, text = pack(hostile, large)
    assert not set("<>&") & set(text)
    assert unpack(*pack(hostile, large))["labels"] == hostile["labels"]
    assert pack(hostile, large) == pack(json.loads(json.dumps(hostile)), large)


def test_compression_makes_a_large_page_several_times_smaller(examples):
    plain, squeezed = (len(pack(examples, large)[1]) for large in (10**9, 10))
    assert squeezed < plain / 2
