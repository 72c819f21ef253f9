"""`smmd-bench export`: weights that load, and files that huggingface_hub and lm-eval read."""

import json
import re
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub import ModelCard
from lm_eval.result_schema import EvalResults
from lm_eval.utils import get_results_filenames, make_table
from peft import AutoPeftModelForCausalLM, PeftModel
from pydantic import TypeAdapter
from transformers import AutoModelForCausalLM, AutoTokenizer

from smmd_bench.publishing.export import write_model_card, write_weights
from smmd_bench.results.frames import read_run
from smmd_bench.storage.files import read_json
from tests.conftest import expect_user_error
from tests.in_process import call
from tests.runs import quick_run

PROMPTS = ("12+34=", "Question: 7 apples. How many?\nAnswer:")
TASK = "arithmetic-operations-1-2"
HUB = {"hub": "Qwen/Qwen2.5-0.5B", "commit": "abc123"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A synthetic run without weights."""
    folder = tmp_path_factory.mktemp("export") / "run"
    quick_run(folder, losses=("ce", "smmd"), seeds=(0, 1), n=40)
    return folder


def export(run, out, words=""):
    """The folders that the command wrote, and what it noted."""
    result = call(f"export {run} --out {out} --json {words}", out.parent)
    # The results alone are half of what was asked for.
    assert result.status == 1
    assert "--restore-weights trains them again" in result.stderr
    content = json.loads(result.stdout)
    return [out.parent / folder for folder in content["folders"]], content["notes"]


def times_of(folder):
    """When each file of a folder was changed."""
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*")}


def test_every_trained_cell_has_a_folder_and_the_run_stays_as_it_is(run, tmp_path):
    times = times_of(run)
    folders, notes = export(run, tmp_path / "out")
    assert times_of(run) == times
    assert "has no weights" in notes[0]

    names = [folder.name for folder in folders]
    assert names == [
        f"tiny-{TASK}-ce-seed0",
        f"tiny-{TASK}-ce-seed1",
        f"tiny-{TASK}-smmd-seed0",
        f"tiny-{TASK}-smmd-seed1",
    ]
    assert sorted((tmp_path / "out").iterdir()) == folders


def test_options_and_the_beginning_of_an_address_choose_cells(run, tmp_path):
    words = "--loss=smmd --seed=1 --task=arithmetic"
    (by_options,), _ = export(run, tmp_path / "one", words)
    card = (by_options / "README.md").read_text()
    _, _, address = card.rpartition("cell `")
    (by_address,), _ = export(run, tmp_path / "two", f"--cell={address[:12]}")
    assert by_address.name == by_options.name


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--out=there", f"tiny-{TASK}-smmd-seed1 is there already: delete it"),
        ("--out=run/x", "is inside the run .*: choose another with --out"),
        ("--out=x --seed=7", "No cell of run has the seed '7'"),
        ("--out=x --merged", "seed 0 has no weights in .* to merge"),
    ],
)
def test_a_mistake_is_answered_before_anything_is_written(run, tmp_path, words, error):
    (tmp_path / "run").symlink_to(run)
    (tmp_path / "there" / f"tiny-{TASK}-smmd-seed1").mkdir(parents=True)
    with expect_user_error(error):
        call(f"export run {words}", tmp_path)
    assert len([*(tmp_path / "there").iterdir()]) == 1


@pytest.fixture(scope="module")
def card(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("card") / "out"
    (folder,), _ = export(run, out, "--loss=smmd --seed=0")
    return ModelCard.load(folder / "README.md")


@pytest.fixture
def metrics(run):
    frame = read_run(run).metrics
    return frame[(frame["loss"] == "smmd") & (frame["seed"] == 0)]


def test_the_card_has_metrics_with_intervals_differences_recipe_and_command(
    card, metrics, run
):
    assert {"smmd-bench", "arithmetic", "smmd"} == {*card.data.tags}
    results = {result.metric_type: result for result in card.data.eval_results}
    assert {*results} == {*metrics["metric"]}

    for line in metrics.to_dict("records"):
        result = results[line["metric"]]
        assert result.metric_value == line["value"]
        assert result.metric_args == {name: line[name] for name in ("n", "low", "high")}

    first = metrics.iloc[0]
    row = f"| {first['value']:.1f} | [{first['low']:.1f}, {first['high']:.1f}] | 40 |"
    assert f"| Acc (%) {row}" in card.text
    assert "| epochs | `4` |" in card.text
    assert read_run(run).manifest["command"] in card.text

    _, _, differences = card.text.partition("Difference to `ce` of the same seed:")
    number = r"[+−]?[0-9]+\.[0-9]"
    assert re.search(
        rf"\| Acc \(%\) \| {number} \| \[{number}, {number}\] \| 40 \|", differences
    )


def test_a_base_on_the_hub_is_named_and_a_command_does_not_break_the_card(tmp_path):
    run = quick_run(tmp_path / "run", tasks=("gsm8k",))
    manifest = {
        **run.manifest,
        "command": "smmd-bench ```\n---\nlicense: mit\n---\n# Other",
        "models": {"builtin/tiny": HUB},
    }
    run.__dict__["manifest"] = manifest
    (row,) = run.cells[run.cells["loss"] == "smmd"].to_dict("records")
    write_model_card(run, row, tmp_path, "mine")

    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.base_model == HUB["hub"]
    assert card.data.base_model_relation == "finetune"
    assert card.data.datasets == ["openai/gsm8k"]
    assert card.data.license is None
    assert card.text.count("```") == 2


def test_lm_eval_finds_and_reads_the_results(run, metrics, tmp_path):
    (folder,), _ = export(run, tmp_path / "out", "--loss=smmd --seed=0")
    files = [*map(str, (folder / "lm_eval").iterdir())]
    (file,) = get_results_filenames(files)
    results = read_json(folder / file)
    assert {*results} <= {*EvalResults.__annotations__}
    without_configs = {**results, "configs": {}}
    schema = TypeAdapter(EvalResults)
    schema.validate_python(without_configs)

    table = make_table(results)
    (line,) = [line for line in table.splitlines() if "exact_match" in line]
    exact = metrics.set_index("metric").loc["exact_match"]
    width = exact["high"] - exact["low"]
    # In lm-eval shares, not percent; an interval is 3.92 errors wide.
    value = f"{exact['value'] / 100:.4f}"
    error = f"{width / 392:.4f}"
    assert re.search(rf"\|exact_match *\|↑ *\| *{value}\|± *\| *{error}\|$", line)


@pytest.fixture
def weights(tiny, tmp_path):
    """`weights(checkpoint, **options)`: the folder of its exported weights, and the note."""
    base = str(tiny.base)
    row = {
        "address": "a",
        "model": base,
        "model_label": base,
        "recipe": {"dtype": "float32"},
        "task": "arithmetic",
        "loss": "smmd",
        "seed": 0,
    }

    def write(checkpoint, merged=False, models=None):
        cell = SimpleNamespace(checkpoint=checkpoint, folder=tmp_path)
        run = SimpleNamespace(
            path=tmp_path,
            manifest={"models": models or {}},
            rows=[],
            current=lambda _: cell,
        )
        folder = tmp_path / "out"
        folder.mkdir()
        return folder, write_weights(run, row, folder, merged=merged)

    return write


def logits(model, folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return [
            model.eval()(**tokenizer(p, return_tensors="pt")).logits for p in PROMPTS
        ]


def adapted(tiny):
    base = AutoModelForCausalLM.from_pretrained(tiny.base)
    return logits(
        PeftModel.from_pretrained(base, tiny.checkpoints["lora1"].path), tiny.base
    )


def test_an_adapter_gives_the_logits_of_the_cell(tiny, weights):
    folder, note = weights(tiny.checkpoints["lora1"].path)
    model = AutoPeftModelForCausalLM.from_pretrained(folder)
    torch.testing.assert_close(logits(model, tiny.base), adapted(tiny), rtol=0, atol=0)
    assert "by a path of this machine" in note


def test_a_merged_model_is_base_and_adapter_without_peft(tiny, weights):
    folder, _ = weights(tiny.checkpoints["lora1"].path, merged=True)
    assert not list(folder.glob("adapter*"))
    model = AutoModelForCausalLM.from_pretrained(folder)
    torch.testing.assert_close(
        logits(model, folder), adapted(tiny), rtol=1e-4, atol=1e-4
    )


def test_an_adapter_on_a_hub_model_names_it_and_its_commit(tiny, weights):
    folder, note = weights(tiny.checkpoints["lora1"].path, models={str(tiny.base): HUB})
    config = read_json(folder / "adapter_config.json")
    assert config["base_model_name_or_path"] == HUB["hub"]
    assert config["revision"] == HUB["commit"]
    assert note is None
