"""Which completions the page shows."""

import base64
import io
import shutil
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
def embedded(run):
    return embedded_examples(run)


def test_a_small_run_is_shown_whole_and_disagreements_come_first(embedded):
    rows = embedded["rows"]
    assert len(rows) == 2 * 200
    assert embedded["total"] == 4 * len(rows)
    assert embedded["shown"] == 4 * len(rows)

    flags = [row[6] for row in rows]
    assert flags == sorted(flags, reverse=True)
    assert 0 < sum(flags) < len(flags)

    # The untuned base, which is the first loss, makes no disagreement.
    for *_, categories, differs, _ in rows:
        is_exact = {CATEGORIES[category] == "exact" for category in categories[1:]}
        assert differs == (len(is_exact) > 1)


def test_the_limit_counts_completions_and_groups_take_turns(run):
    embedded = embedded_examples(run, limit=101)
    assert embedded["shown"] == 100
    groups = Counter(row[0] for row in embedded["rows"])
    assert groups == {0: 13, 1: 12}
    assert all(row[6] for row in embedded["rows"])


def test_a_row_has_texts_and_categories_of_one_example(run, embedded):
    completions = run.completions.set_index(["loss", "seed", "uid"])
    for group, uid, prompt, target, answers, categories, *_ in embedded["rows"][::7]:
        title = embedded["groups"][group]
        losses = title["losses"]
        assert losses == ["base", "ce", "ntl", "smmd"]
        for loss, answer, category in zip(losses, answers, categories, strict=True):
            seed = 0 if loss == "base" else title["seed"]
            row = completions.loc[(loss, seed, uid)]
            assert row.prompt == prompt
            assert row.target == target
            assert row.completion == answer
            assert row.category == CATEGORIES[category]


def test_long_texts_are_cut_and_summaries_have_no_category(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "LONGEST", 10)
    write_run(
        tmp_path,
        tasks=("samsum",),
        losses=("ce", "smmd"),
        seeds=(0,),
        n=5,
        resamples=20,
    )
    rows = embedded_examples(sb.read_run(tmp_path))["rows"]

    assert {len(row[2]) for row in rows} == {12}
    assert {category for row in rows for category in row[5]} == {-1}


def test_the_first_rows_have_small_copies_of_the_pictures_that_are_there(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(examples, "PICTURES", 6)
    write_run(
        tmp_path, tasks=("gsm8k", "chartqa"), losses=("ce", "smmd"), seeds=(0, 1), n=9
    )
    embedded = embedded_examples(sb.read_run(tmp_path))
    pictured = []
    for place, (group, *_, picture) in enumerate(embedded["rows"]):
        if picture is not None:
            pictured.append(picture)
            assert place < 6
            assert embedded["groups"][group]["task"] == "chartqa"

    assert pictured
    for uri in pictured:
        kind, content = uri.split(",")
        assert kind == "data:image/webp;base64"
        content = base64.b64decode(content)
        picture = Image.open(io.BytesIO(content))
        assert picture.size == (200, 150)

    shutil.rmtree(tmp_path / "pictures")
    embedded = embedded_examples(sb.read_run(tmp_path))
    assert not any(row[7] for row in embedded["rows"])
