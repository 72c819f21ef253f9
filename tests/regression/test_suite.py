"""Which suites there are, and where their questions come from."""

import shutil
from pathlib import Path

import pytest

from smmd_bench.data_files import VARIABLE
from smmd_bench.errors import UserError
from smmd_bench.regression.mmlu_data import REPOSITORY, REVISION, is_mmlu, mmlu_folder, subjects
from smmd_bench.regression.suite import find_suites


def test_mmlu_has_57_subjects_five_shots_and_its_groups(
    mmlu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(mmlu))
    assert len(subjects()) == 57
    assert all(map(is_mmlu, ["mmlu", "mmlu_stem", "mmlu_anatomy"]))
    assert not any(map(is_mmlu, ["mmlu_pro", "samsum", "default"]))
    suites = find_suites(["mmlu", "mmlu_stem", "mmlu_anatomy", "mmlu"], None)
    assert [(s.name, s.shots, s.version) for s in suites] == [
        ("mmlu", 5, 1), ("mmlu_stem", 5, 1), ("mmlu_anatomy", 5, 1),
    ]  # fmt: skip
    assert {s.folder for s in suites} == {str(mmlu / "mmlu" / "cais" / "mmlu")}
    (zero,) = find_suites(["mmlu"], 0)
    assert zero.shots == 0
    assert zero.identity() != suites[0].identity()


@pytest.mark.parametrize("place", ["mmlu/cais/mmlu", "cais/mmlu", "mmlu", ""])
def test_a_copy_may_lie_anywhere_near(
    place: str, mmlu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "data" / place
    shutil.copytree(mmlu / "mmlu" / "cais" / "mmlu", copy, dirs_exist_ok=True)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    folder, identity = mmlu_folder()
    assert folder == copy
    monkeypatch.setenv(VARIABLE, str(mmlu))
    assert mmlu_folder()[1] == identity


def test_other_questions_are_other_data(
    mmlu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(mmlu))
    folder, before = mmlu_folder()
    shutil.copytree(folder, tmp_path / "mmlu")
    name = "test-00000-of-00001.parquet"
    shutil.copy(folder / "astronomy" / name, tmp_path / "mmlu" / "anatomy" / name)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert mmlu_folder()[1] != before


@pytest.mark.parametrize("lacking", ["README.md", "virology/dev-00000-of-00001.parquet"])
def test_half_a_copy_is_refused(
    lacking: str, mmlu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(mmlu / "mmlu" / "cais" / "mmlu", tmp_path / "mmlu")
    (tmp_path / "mmlu" / lacking).unlink()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(UserError, match=lacking.partition("-")[0]):
        mmlu_folder()


def test_an_empty_data_folder_says_what_to_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(UserError, match=f"hf download {REPOSITORY} .*{REVISION}.*--data-dir DIR"):
        find_suites(["mmlu"], None)


def test_no_network_and_no_copy_says_what_to_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match=f"cannot be fetched.*hf download {REPOSITORY}"):
        find_suites(["mmlu"], None)


@pytest.mark.slow
def test_an_unknown_suite_gets_the_nearest_names() -> None:
    with pytest.raises(UserError, match="Unknown suite 'helaswag': did you mean hellaswag"):
        find_suites(["helaswag"], None)
    with pytest.raises(UserError, match="lm-eval ls tasks"):
        find_suites(["qqqqqqqqqqqqqqqqqqqqqqqqqq"], None)
