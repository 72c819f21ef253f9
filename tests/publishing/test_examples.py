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


def test_a_small_run_is_shown_whole(run):
    found = embedded_examples(run)
    assert found["total"] == found["shown"] == 2 * 200 * 4
    assert len(found["rows"]) == 2 * 200


def test_disagreements_come_first(run):
    flags = [row[-1] for row in embedded_examples(run)["rows"]]
    assert flags == sorted(flags, reverse=True)
    assert 0 < sum(flags) < len(flags)


def test_the_untuned_base_makes_no_disagreement(run):
    for row in embedded_examples(run)["rows"]:
        assert row[-1] == (len(set(row[-2][1:])) > 1)


def test_the_limit_counts_completions_and_groups_take_turns(run):
    found = embedded_examples(run, limit=101)
    assert found["shown"] == 100
    assert Counter(row[0] for row in found["rows"]) == {0: 13, 1: 12}
    assert all(row[-1] for row in found["rows"])


def test_a_row_has_the_texts_of_one_example(run):
    completions = run.completions.set_index(["loss", "seed", "prompt"])["completion"]
    found = embedded_examples(run, limit=400)
    for group, prompt, _, answers, _, exact, _ in found["rows"][:20]:
        seed = found["groups"][group]["seed"]
        losses = found["groups"][group]["losses"]
        assert len(exact) == len(losses) == 4
        for loss, answer in zip(losses, answers, strict=True):
            assert answer == completions[loss, 0 if loss == "base" else seed, prompt]


def test_exact_flags_say_which_answer_is_right(run):
    for _, _, target, answers, _, exact, _ in embedded_examples(run)["rows"]:
        assert [flag == "1" for flag in exact] == [answer == target for answer in answers]


def test_long_texts_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "LONGEST", 10)
    write_run(tmp_path, seeds=(0,), n=5, resamples=20)
    rows = embedded_examples(sb.read_run(tmp_path))["rows"]
    assert all(len(row[1]) <= 12 for row in rows)


def test_categories_are_those_of_the_scores(run):
    completions = run.completions.set_index(["loss", "seed", "prompt"])["category"]
    found = embedded_examples(run)
    for group, prompt, _, _, categories, exact, _ in found["rows"]:
        title = found["groups"][group]
        for loss, letter, flag in zip(title["losses"], categories, exact, strict=True):
            name = CATEGORIES[examples.LETTERS.index(letter)]
            assert name == completions[loss, 0 if loss == "base" else title["seed"], prompt]
            assert (name == "exact") == (flag == "1")


def test_summaries_have_no_category(tmp_path):
    write_run(tmp_path, tasks=("samsum",), losses=("ce", "smmd"), seeds=(0,), n=5, resamples=20)
    assert {row[4] for row in embedded_examples(sb.read_run(tmp_path))["rows"]} == {"---"}


def test_the_first_pictures_have_small_copies_each_once(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "PICTURES", 3)
    write_run(tmp_path, tasks=("gsm8k", "chartqa"), losses=("ce", "smmd"), seeds=(0, 1), n=9)
    found = embedded_examples(sb.read_run(tmp_path))
    assert len(found["pictures"]) == 3
    assert Counter(found["pictured"].values()) == {0: 2, 1: 2, 2: 2}
    rows = {row: found["rows"][row] for row in found["pictured"]}
    assert {found["groups"][row[0]]["task"] for row in rows.values()} == {"chartqa"}
    for at in range(3):
        prompts = {rows[row][1] for row, picture in found["pictured"].items() if picture == at}
        assert len(prompts) == 1
    for uri in found["pictures"]:
        kind, _, content = uri.partition(",")
        assert kind == "data:image/jpeg;base64"
        assert Image.open(io.BytesIO(base64.b64decode(content))).size == (200, 150)


def test_a_picture_that_is_gone_is_left_out(tmp_path):
    write_run(tmp_path, tasks=("clock_time",), losses=("ce", "smmd"), seeds=(0,), n=10)
    before = embedded_examples(sb.read_run(tmp_path))
    for file in (tmp_path / "pictures").iterdir():
        file.unlink()
    assert embedded_examples(sb.read_run(tmp_path)) == {
        **before, "pictures": [], "pictured": {},
    }  # fmt: skip
