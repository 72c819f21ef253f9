"""Which suites there are, and where their questions come from."""

import dataclasses
import shutil

import pytest

from smmd_bench.errors import UserError
from smmd_bench.regression.find_suites import find_suites, shots_notes
from smmd_bench.regression.load_tasks import load_tasks
from smmd_bench.regression.mmlu_data import REPOSITORY, REVISION, is_mmlu, mmlu_folder, subjects
from smmd_bench.regression.suite_names import require_suites
from smmd_bench.storage.data_files import VARIABLE
from tests.conftest import DATA


def test_mmlu_has_57_subjects_five_shots_and_its_groups(mmlu, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(mmlu))
    assert len(subjects()) == 57
    assert all(map(is_mmlu, ["mmlu", "mmlu_stem", "mmlu_anatomy"]))
    assert not any(
        map(
            is_mmlu, ["mmlu_pro", "samsum", "default", "default_template_yaml", "mmlu/x", "../mmlu"]
        )
    )
    suites = find_suites(["mmlu", "mmlu_stem", "mmlu_anatomy", "mmlu"], None)
    assert [(s.name, s.shots, s.version) for s in suites] == [
        ("mmlu", 5, 1), ("mmlu_stem", 5, 1), ("mmlu_anatomy", 5, 1),
    ]  # fmt: skip
    assert {s.folder for s in suites} == {str(mmlu / "mmlu" / "cais" / "mmlu")}
    (zero,) = find_suites(["mmlu"], 0)
    assert zero.shots == 0
    assert zero.identity() != suites[0].identity()


@pytest.fixture
def copy(mmlu, tmp_path, monkeypatch):
    """`copy(place)`: a copy of the questions, there in the folder of local copies."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    source = mmlu / "mmlu" / "cais" / "mmlu"
    return lambda place="mmlu": shutil.copytree(
        source, tmp_path / "data" / place, dirs_exist_ok=True
    )


@pytest.mark.parametrize("place", ["mmlu/cais/mmlu", "cais/mmlu", "mmlu", ""])
def test_a_copy_may_lie_anywhere_near_and_other_questions_are_other_data(
    place, copy, mmlu, monkeypatch
):
    folder = copy(place)
    found, identity = mmlu_folder()
    assert found == folder
    name = "test-00000-of-00001.parquet"
    shutil.copy(folder / "astronomy" / name, folder / "anatomy" / name)
    assert mmlu_folder()[1] != identity
    monkeypatch.setenv(VARIABLE, str(mmlu))
    assert mmlu_folder()[1] == identity


def test_half_a_copy_is_refused(copy):
    (copy() / "virology" / "dev-00000-of-00001.parquet").unlink()
    with pytest.raises(UserError, match="virology/dev"):
        mmlu_folder()


def test_only_the_files_of_the_two_splits_matter(copy):
    """A README.md with a split that was not copied is no hindrance, nor is none at all."""
    folder = copy()
    readme = folder / "README.md"
    line = "    path: anatomy/dev-*\n"
    more = "  - split: validation\n    path: anatomy/validation-*\n"
    readme.write_text(readme.read_text().replace(line, line + more))
    loaded = []
    for _ in range(2):
        (task,) = load_tasks(*find_suites(["mmlu_anatomy"], None))["tasks"].values()
        loaded.append([list(task.test_docs()), list(task.fewshot_docs())])
        readme.unlink(missing_ok=True)
    assert loaded[0] == loaded[1]
    assert [len(rows) for rows in loaded[0]] == [2, 5]
    assert loaded[0][0][0]["choices"]
    (folder / "anatomy" / "test-00000-of-00001.parquet").write_text("no Parquet")
    with pytest.raises(UserError, match=r"mmlu_anatomy in .* cannot be loaded .*: copy it again"):
        load_tasks(*find_suites(["mmlu_anatomy"], None))


def test_a_missing_package_is_named(mmlu, monkeypatch):
    def fail(_):
        raise ModuleNotFoundError("No module named 'sympy_of_old'")

    monkeypatch.setenv(VARIABLE, str(mmlu))
    monkeypatch.setattr("smmd_bench.regression.load_tasks._load", fail)
    with pytest.raises(UserError, match=r"needs a Python package .*'sympy_of_old'"):
        load_tasks(*find_suites(["mmlu_anatomy"], None))


def test_samsum_is_always_0_shot(monkeypatch):
    monkeypatch.setenv(VARIABLE, str(DATA))
    plain, asked = (find_suites(["samsum"], shots) for shots in (None, 5))
    assert plain == asked
    with pytest.raises(UserError, match="samsum take none"):
        shots_notes(asked, 5)
    both = [*asked, dataclasses.replace(asked[0], name="mmlu", shots=5)]
    assert shots_notes(both, 5) == ["--shots 5 is ignored: samsum is always 0-shot."]
    assert shots_notes(plain, None) == shots_notes(plain, 0) == []
    assert plain[0].data["scorer"].keys() == {"task", "metrics", "rouge-score"}


def test_what_to_fetch_is_said_where_there_is_no_copy_and_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(UserError, match=f"hf download {REPOSITORY} .*{REVISION}.*--data-dir DIR"):
        find_suites(["mmlu"], None)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match=f"cannot be fetched.*hf download {REPOSITORY}"):
        find_suites(["mmlu"], None)


def test_the_text_of_the_task_files_tells_known_names_from_mistyped_ones():
    require_suites(["mmlu", "mmlu_stem", "samsum", "gsm8k", "scrolls_qasper"])
    with pytest.raises(UserError, match="Unknown suite 'gsmm8k': did you mean gsm8k"):
        require_suites(["gsm8k", "gsmm8k"])
    with pytest.raises(UserError, match="Unknown suite 'zzzzzzzz': known are mmlu, samsum and"):
        require_suites(["zzzzzzzz"])


@pytest.mark.engine
@pytest.mark.slow
def test_an_unknown_suite_gets_the_nearest_names_and_idle_shots_make_no_other_address():
    with pytest.raises(UserError, match="Unknown suite 'helaswag': did you mean hellaswag"):
        find_suites(["helaswag"], None)
    with pytest.raises(UserError, match="lm-eval ls tasks"):
        find_suites(["qqqqqqqqqqqqqqqqqqqqqqqqqq"], None)
    names = ["ifeval", "gsm8k", "hellaswag", "truthfulqa", "bbh"]
    five = find_suites(names, 5)
    assert [suite.shots for suite in five] == [None, None, 5, None, 5]  # gsm8k has 5 of its own
    assert [note.split()[4] for note in shots_notes(five, 5)] == ["ifeval", "truthfulqa"]
    assert find_suites(["hellaswag"], 0) == find_suites(["hellaswag"], None)
