"""README.md is a model card that huggingface_hub reads."""

import re

import pytest
from huggingface_hub import ModelCard

from smmd_bench.results.frames import read_run
from smmd_bench.storage.files import read_json, write_json
from tests.runs import quick_run


@pytest.fixture
def card(arithmetic_run, export):
    return ModelCard.load(export(arithmetic_run, "--seed", 0) / "README.md")


@pytest.fixture
def metrics(arithmetic_run):
    frame = read_run(arithmetic_run).metrics
    return frame[(frame["loss"] == "smmd") & (frame["seed"] == 0)]


def test_the_metadata_hold_every_metric_with_its_interval(card, metrics):
    found = {r.metric_type: (r.metric_value, r.metric_args) for r in card.data.eval_results}
    assert found == {
        m["metric"]: (
            m["value"],
            {"n": m["n"], "low": m["low"], "high": m["high"], "confidence": 0.95},
        )
        for m in metrics.to_dict("records")
    }
    assert {"smmd-bench", "arithmetic", "smmd"} == {*card.data.tags}


def test_the_text_has_metrics_with_intervals_recipe_and_command(card, metrics, arithmetic_run):
    first = metrics.iloc[0]
    row = f"| {first['value']:.1f} | [{first['low']:.1f}, {first['high']:.1f}] | 40 |"
    assert f"| Acc (%) {row}" in card.text
    assert "| epochs | `4` |" in card.text
    assert read_run(arithmetic_run).manifest["command"] in card.text


def test_values_and_differences_have_the_labels_and_the_digits_of_the_tables(card):
    values, _, differences = card.text.partition("Difference to `ce` of the same seed:")
    number = r"[+−]?[0-9]+\.[0-9]"
    for part in (values, differences):
        for label, digit in (("Acc (%)", ""), ("MAE of 90 %", "[0-9]"), ("R²", "[0-9]")):
            one = number + digit
            assert re.search(rf"\| {re.escape(label)} \| {one} \| \[{one}, {one}\] \| ", part)
    assert not re.search("exact_match|trimmed_absolute_error", card.text)


def test_each_interval_is_called_what_it_is(card):
    shares = "Acc (%), Text match (%), Parse failures (%), Truncated (%)"
    assert f"Wilson's score interval is that of {shares}, and Tango's that of their" in card.text
    assert "bootstrap over the test examples is that of MAE, MAE of 90 %, R², and" in card.text


@pytest.mark.parametrize(("method", "rows"), [("full", 0), ("lora", 2)])
def test_a_recipe_without_an_adapter_lists_no_settings_of_one(method, rows, tmp_path, export):
    recipe = {"epochs": 4, "method": method, "lora_rank": 16, "lora_targets": "q_proj"}
    quick_run(tmp_path / "run", recipe=recipe)
    text = (export(tmp_path / "run") / "README.md").read_text()
    assert text.count("\n| lora_") == rows


def test_a_base_on_the_hub_is_named(tmp_path, export):
    run = tmp_path / "run"
    quick_run(run, tasks=("gsm8k",))
    manifest = read_json(run / "manifest.json")
    hub = {"builtin/tiny": {"hub": "Qwen/Qwen2.5-0.5B", "commit": "abc"}}
    write_json(run / "manifest.json", {**manifest, "models": hub})
    data = ModelCard.load(export(run) / "README.md").data
    assert (data.base_model, data.base_model_relation) == ("Qwen/Qwen2.5-0.5B", "finetune")
    assert data.datasets == ["openai/gsm8k"]


def test_text_of_a_manifest_does_not_break_the_card(tmp_path, export):
    run = tmp_path / "run"
    quick_run(run)
    manifest = read_json(run / "manifest.json")
    command = "smmd-bench ```\n---\nlicense: mit\n---\n# Other"
    write_json(run / "manifest.json", {**manifest, "command": command})
    card = ModelCard.load(export(run) / "README.md")
    assert card.data.license is None
    assert card.text.count("```") == 2


@pytest.mark.parametrize("merged", [False, True])
def test_the_code_of_the_card_loads_the_weights(merged, make_run, export, checkpoints):
    folder = export(make_run(), *(["--merged"] if merged else []))
    text = ModelCard.load(folder / "README.md").text
    code = text.partition("```python\n")[2].partition("```")[0]
    code = code.replace('"."', repr(str(folder))).replace("BASE", repr(str(checkpoints.base)))
    names = {}
    exec(code, names)
    assert type(names["model"]).__name__ == (
        "Qwen2ForCausalLM" if merged else "PeftModelForCausalLM"
    )
