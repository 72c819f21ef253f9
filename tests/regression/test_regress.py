"""`regress`: which checkpoints and suites, lm-eval's own numbers, and what is compared."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from smmd_bench.contracts import JobResult
from smmd_bench.models.cards import model_card
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.regression import evaluate
from smmd_bench.regression.evaluation import find_targets, plan, regress
from smmd_bench.regression.suites import (
    REPOSITORY,
    REVISION,
    find_suites,
    is_mmlu,
    mmlu_folder,
    subjects,
)
from smmd_bench.results.frames import read_run
from smmd_bench.run.pipeline import Outcome
from smmd_bench.run.run_directory import record_failure
from smmd_bench.storage.data_files import VARIABLE
from smmd_bench.storage.files import read_json, write_json
from tests.cli.conftest import call as call_cli
from tests.conftest import DATA, LIBRARY_WARNINGS, expect_user_error, silent

from .conftest import SHORT

SUITE = "mmlu_anatomy"


class Here:
    """An executor that runs jobs in this process; `died` ends them without a word."""

    died = False
    slots = 1

    def run(self, queue, folder, progress):
        while (job := queue.take()) is not None:
            request = json.loads(json.dumps(job.request(folder)))
            if not self.died:
                for name, error in evaluate.run_job(request, progress).items():
                    record_failure(folder, name, "regress", error)
            yield JobResult(
                job, "the process was killed by SIGKILL" if self.died else None
            )


@pytest.fixture
def executor(mmlu, monkeypatch):
    executor = Here()
    monkeypatch.setenv(VARIABLE, str(mmlu))
    monkeypatch.setattr("smmd_bench.regression.evaluation.load", lambda *_: executor)
    return executor


def call(run, losses=(), suite=SUITE, engine="transformers", limit=None):
    evaluations = plan(
        find_targets(run, losses)[0], find_suites([suite], None), engine, limit
    )
    return regress(run, evaluations, silent)


def samples_of(run, engine="transformers"):
    frame = read_run(run).regression
    rows = frame[frame["engine"] == engine]
    samples = {}
    for loss, address in zip(rows["loss"], rows["address"], strict=True):
        samples[loss] = pd.read_parquet(
            run / "regression" / address / "samples.parquet"
        )
    return samples


def test_the_base_once_and_every_selected_checkpoint(make_run, checkpoints):
    run = make_run()
    targets, notes = find_targets(run)
    name = model_card(str(checkpoints.base)).label
    trained = [f"{name} gsm8k {loss} seed 0" for loss in ("ce", "smmd")]
    labels = [target.label for target in targets]

    assert labels == [f"{name} base", *trained]

    facts = [
        [target.facts[name] for name in ("kind", "task", "epoch")] for target in targets
    ]
    assert facts == [["base", None, None], ["lora", "gsm8k", 4], ["lora", "gsm8k", 4]]
    assert targets[0].path == targets[1].base == str(checkpoints.base)
    assert not notes
    assert losses_of(find_targets(run, ["base", "smmd"])[0]) == ["base", "smmd"]
    with expect_user_error(r"has the loss 'smd': did you mean smmd\?"):
        find_targets(run, ["smd"])


def losses_of(targets):
    return [target.facts["loss"] for target in targets]


def test_a_cell_without_weights_or_scores_is_named_and_left_out(make_run):
    run = make_run()
    targets, _ = find_targets(run)
    shutil.rmtree(Path(targets[1].path))
    shutil.rmtree(read_run(run).current(str(targets[2].facts["cell"])).measured)
    targets, notes = find_targets(run)

    assert losses_of(targets) == ["base"]
    assert "no weights" in notes[0]
    assert "is pending" in notes[1]


def update(file, **content):
    """Write other values into a JSON file."""
    write_json(file, {**(read_json(file) or {}), **content})


def test_a_model_that_has_changed_is_refused(make_run, checkpoints):
    run = make_run()
    name = str(checkpoints.base)
    manifest = run / "manifest.json"
    update(manifest, models={name: dict(model_card(name).identity)})

    assert len(find_targets(run)[0]) == 3

    update(manifest, models={name: {"digest": "of other weights"}})
    with expect_user_error(r"has changed since .*: put the old files back"):
        find_targets(run, ["smmd"])

    update(manifest, predictions=1)
    with expect_user_error("holds no checkpoint"):
        find_targets(run)


def test_mmlu_has_57_subjects_five_shots_and_its_groups_and_samsum_no_shots(
    mmlu, monkeypatch
):
    monkeypatch.setenv(VARIABLE, str(mmlu))
    assert len(subjects()) == 57
    assert all(map(is_mmlu, ["mmlu", "mmlu_stem", "mmlu_anatomy"]))
    assert not any(map(is_mmlu, ["mmlu_pro", "samsum", "default", "mmlu/x", "../mmlu"]))

    suites = find_suites(["mmlu", "mmlu_stem", "mmlu_anatomy", "mmlu"], None)
    assert [s.name for s in suites] == ["mmlu", "mmlu_stem", "mmlu_anatomy"]
    assert {(s.shots, s.version) for s in suites} == {(5, 1)}
    assert find_suites(["mmlu"], 0)[0].shots == 0

    monkeypatch.setenv(VARIABLE, str(DATA))
    assert find_suites(["samsum"], None)[0].shots == 0
    with expect_user_error("samsum takes none"):
        find_suites(["samsum"], 5)


@pytest.mark.parametrize("place", ["mmlu/cais/mmlu", "cais/mmlu", "mmlu", ""])
def test_a_copy_may_lie_anywhere_near_and_other_questions_are_other_data(
    place, mmlu, tmp_path, monkeypatch
):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    folder = tmp_path / place
    shutil.copytree(mmlu / "mmlu/cais/mmlu", folder, dirs_exist_ok=True)
    place, identity = mmlu_folder()
    assert place == folder

    name = "test-00000-of-00001.parquet"
    shutil.copy(folder / "astronomy" / name, folder / "anatomy" / name)
    _, other_identity = mmlu_folder()
    assert other_identity != identity

    for file in folder.rglob("*.parquet"):
        file.unlink()
    with expect_user_error(f"has no .*hf download {REPOSITORY} .*{REVISION}"):
        mmlu_folder()


@pytest.mark.long
def test_an_unknown_suite_gets_the_nearest_names():
    with expect_user_error("Unknown suite 'helaswag': did you mean hellaswag"):
        find_suites(["helaswag"], None)


@pytest.mark.long
def test_nothing_is_evaluated_twice_and_each_is_compared_with_ce(
    make_run, executor, monkeypatch
):
    run = make_run()
    assert call(run, losses=("base", "smmd")) == Outcome(run, True)
    assert read_run(run).regression["against_loss"].fillna("").tolist() == ["", "base"]

    executor.died = True
    assert [*call(run).failed.values()] == ["the process was killed by SIGKILL"]

    executor.died = False
    assert call(run) == Outcome(run, True)

    monkeypatch.setattr(evaluate, "run_job", None)
    assert call(run) == Outcome(run)

    frame = read_run(run).regression
    assert frame["loss"].tolist() == ["base", "ce", "smmd"]
    assert frame["against_loss"].fillna("").tolist() == ["", "base", "ce"]
    assert set(frame["n"]) == {2}
    assert set(frame["shots"]) == {5}
    assert not list(run.glob("failed/*.json"))


@pytest.mark.long
def test_a_suite_that_fails_leaves_the_others(make_run, executor, monkeypatch):
    run = make_run(losses=())
    copy = shutil.copytree(mmlu_folder()[0], run.parent / "copy")
    monkeypatch.setenv(VARIABLE, str(copy))
    (copy / "anatomy/test-00000-of-00001.parquet").write_text("no Parquet")
    suites = find_suites([SUITE, "mmlu_virology"], None)
    evaluations = plan(find_targets(run)[0], suites, "transformers", 1)
    outcome = regress(run, evaluations, silent)
    (error,) = outcome.failed.values()

    assert "lm-eval cannot run mmlu_anatomy" in error
    assert read_run(run).regression["suite"].tolist() == ["mmlu_virology"]


def by_hand(base, adapter, data):
    """MMLU with lm-eval's HFLM, the data given by a group file of our own."""
    import lm_eval
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    content = {
        "group": "by_hand", "task": ["mmlu_stem", "mmlu_other"], "dataset_path": str(data),
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
    }  # fmt: skip
    (data / "by_hand.yaml").write_text(yaml.safe_dump(content))
    files = Path(lm_eval.__file__).parent / "tasks/mmlu/default"
    manager = TaskManager(include_path=[str(files), str(data)], include_defaults=False)
    model = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(base), adapter
    )
    model = HFLM(model.merge_and_unload(), tokenizer=load_tokenizer(base), batch_size=1)
    return simple_evaluate(
        model=model, tasks=["by_hand"], task_manager=manager, num_fewshot=5, limit=2
    )


@pytest.mark.slow
@pytest.mark.filterwarnings(*LIBRARY_WARNINGS)
def test_adapters_equal_lm_eval_by_hand(make_run, checkpoints, executor, mmlu):
    run = make_run()
    call(run, losses=("base", "smmd"), suite="mmlu", limit=2)
    hand = by_hand(
        checkpoints.base, checkpoints.adapters["smmd"], mmlu / "mmlu/cais/mmlu"
    )
    frame = read_run(run).regression
    rows = frame[frame["loss"] == "smmd"].set_index("name")

    assert len(rows) == 62  # 57 subjects, four groups and the whole
    for name in ("mmlu_stem", "mmlu_other", "mmlu_anatomy", "mmlu_virology"):
        expected = hand["results"][name]
        percent = [100 * expected["acc,none"], 100 * expected["acc_stderr,none"]]
        row = rows.loc[name, ["value", "stderr"]]
        assert row.tolist() == pytest.approx(percent, abs=1e-9)

    samples = samples_of(run)
    ours = samples["smmd"].set_index(["subtask", "doc_id"])["acc"]
    assert rows["value"]["mmlu"] == pytest.approx(100 * ours.mean())
    for name, logged in hand["samples"].items():
        expected = {sample["doc_id"]: sample["acc"] for sample in logged}
        assert ours[name].to_dict() == expected
    # the adapter tells
    assert not samples["smmd"]["acc"].equals(samples["base"]["acc"])


@pytest.mark.long
def test_what_does_not_fit_the_context_is_counted(make_run, checkpoints, executor):
    run = make_run(base=checkpoints.short, losses=())
    call(run, suite="mmlu_stem")
    call(run, suite="mmlu_high_school_us_history")
    frame = read_run(run).regression.drop_duplicates("address").set_index("suite")

    assert set(frame["context"]) == {SHORT}
    assert 0 < frame.loc["mmlu_stem", "truncated"] < frame.loc["mmlu_stem", "documents"]
    assert frame.loc["mmlu_high_school_us_history", "truncated"] == 2


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.filterwarnings(*LIBRARY_WARNINGS)
def test_vllm_answers_as_transformers(make_run, executor):
    run = make_run(losses=("smmd",))
    for engine in ("transformers", "vllm"):
        assert call(run, engine=engine, suite="mmlu_other") == Outcome(run, True)

    by_transformers = samples_of(run)
    by_vllm = samples_of(run, "vllm")
    for loss in ("base", "smmd"):
        pd.testing.assert_frame_equal(by_transformers[loss], by_vllm[loss])


@pytest.mark.slow
def test_samsum_from_the_command_line_and_nothing_the_second_time(make_run, mmlu):
    run = make_run(losses=("smmd",))
    (mmlu / "samsum").mkdir(exist_ok=True)
    shutil.copy(DATA / "samsum/test.json", mmlu / "samsum/test.json")
    words = f"regress {run} --suite {SUITE},samsum --limit 2 --data-dir {mmlu}"
    command = call_cli(words)

    assert command.returncode == 0, command.stdout + command.stderr
    assert "2 checkpoints x mmlu_anatomy, samsum with transformers" in command.stdout

    frame = read_run(run).regression
    assert set(frame.loc[frame["suite"] == "samsum", "metric"]) == {
        "rouge1",
        "rouge2",
        "rougeL",
    }
    assert "Nothing to do" in call_cli(words).stdout
