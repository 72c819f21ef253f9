"""Which completions the page shows."""

import base64
import io
from collections import Counter

import pytest
from PIL import Image

import smmd_bench as sb
from smmd_bench.publishing import examples
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.scoring.categories import CATEGORIES
from tests.runs import write_run


@pytest.fixture(scope="module")
def run(run_folder):
    return sb.read_run(run_folder)


@pytest.fixture(scope="module")
def found(run):
    return embedded_examples(run)


def test_a_small_run_is_shown_whole_and_disagreements_come_first(found):
    assert found["total"] == found["shown"] == 2 * 200 * 4
    assert len(found["rows"]) == 2 * 200
    flags = [row[6] for row in found["rows"]]
    assert flags == sorted(flags, reverse=True)
    assert 0 < sum(flags) < len(flags)
    for row in found["rows"]:  # the untuned base makes no disagreement
        exact = {CATEGORIES[category] == "exact" for category in row[5][1:]}
        assert row[6] == (len(exact) > 1)


def test_the_limit_counts_completions_and_groups_take_turns(run):
    some = embedded_examples(run, limit=101)
    assert some["shown"] == 100
    assert Counter(row[0] for row in some["rows"]) == {0: 13, 1: 12}
    assert all(row[6] for row in some["rows"])


def test_a_row_has_texts_and_categories_of_one_example(run, found):
    known = run.completions.set_index(["loss", "seed", "uid"])
    for group, uid, prompt, target, answers, categories, *_ in found["rows"][::7]:
        title = found["groups"][group]
        assert len(title["losses"]) == len(answers) == 4
        for at, loss in enumerate(title["losses"]):
            row = known.loc[(loss, 0 if loss == "base" else title["seed"], uid)]
            assert (prompt, target, answers[at]) == (row.prompt, row.target, row.completion)
            assert CATEGORIES[categories[at]] == row.category


def test_long_texts_are_cut_and_summaries_have_no_category(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "LONGEST", 10)
    write_run(tmp_path, tasks=("samsum",), losses=("ce", "smmd"), seeds=(0,), n=5, resamples=20)
    rows = embedded_examples(sb.read_run(tmp_path))["rows"]
    assert {len(row[2]) for row in rows} == {12}
    assert {category for row in rows for category in row[5]} == {-1}


def test_the_first_rows_have_small_copies_of_the_pictures_that_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "PICTURES", 6)
    write_run(tmp_path, tasks=("gsm8k", "chartqa"), losses=("ce", "smmd"), seeds=(0, 1), n=9)
    found = embedded_examples(sb.read_run(tmp_path))
    uris = [row[7] for row in found["rows"]]
    assert not any(uris[6:])
    assert {found["groups"][row[0]]["task"] for row in found["rows"] if row[7]} == {"chartqa"}
    for uri in filter(None, uris):
        kind, _, content = uri.partition(",")
        assert kind == "data:image/webp;base64"
        assert Image.open(io.BytesIO(base64.b64decode(content))).size == (200, 150)
    for file in (tmp_path / "pictures").iterdir():
        file.unlink()
    assert not any(row[7] for row in embedded_examples(sb.read_run(tmp_path))["rows"])
