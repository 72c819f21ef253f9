"""The examples of the page, packed and unpacked."""

import json

import pytest

import smmd_bench as sb
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.packing import pack, unpack


@pytest.fixture(scope="module")
def examples(run_folder):
    return embedded_examples(sb.read_run(run_folder))


def rows_of(packed):
    """The rows again, as `web/reading.js` reads them."""
    texts, start, rows = packed["texts"], 0, []
    for at, exact in enumerate(packed["exact"]):
        answers = [texts[place] for place in packed["answers"][start : start + len(exact)]]
        errors = packed["errors"][start : start + len(exact)]
        start += len(exact)
        attributes = {name: values[at] for name, values in packed["attributes"].items()}
        prompt, target = texts[packed["prompt"][at]], texts[packed["target"][at]]
        category, differing = packed["category"][at], packed["differing"][at]
        rows.append(
            [packed["group"][at], prompt, target, answers, category, exact, differing,
             packed["uid"][at], errors, attributes]
        )  # fmt: skip
    assert start == len(packed["answers"])
    return rows


@pytest.mark.parametrize(("large", "kind"), [(10**9, "application/json"), (10, "application/gzip")])
def test_what_is_packed_is_unpacked_safe_inside_html_and_always_the_same(examples, large, kind):
    hostile = {**examples, "labels": {"ce": "</script><!-- & 漢"}}
    said, text = pack(hostile, large)
    assert said == kind
    assert not set("<>&") & set(text)
    assert (said, text) == pack(json.loads(json.dumps(hostile)), large)
    unpacked = unpack(said, text)
    assert rows_of(unpacked) == examples["rows"]
    assert len(unpacked["texts"]) == len(set(unpacked["texts"]))
    assert (unpacked["groups"], unpacked["labels"]) == (examples["groups"], hostile["labels"])


def test_compression_makes_a_large_page_several_times_smaller(examples):
    plain, squeezed = (len(pack(examples, large)[1]) for large in (10**9, 10))
    assert squeezed < plain / 2
