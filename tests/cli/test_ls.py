import json

import pytest

from smmd_bench.plugin_system.listing import listing
from smmd_bench.plugin_system.registry import GROUPS
from tests.plugin_system.loss_file import LOSS

from .conftest import call, run_here, write_distribution


def test_a_line_a_plugin_and_everything_with_v():
    short = run_here("ls").stdout.splitlines()
    words = {line.split()[0] for line in short}
    assert {*GROUPS, "models", "arithmetic", "ntl", "smmd", "vllm", "local"} <= words
    assert "builtin/tiny" in words
    assert sum(line.startswith("  smmd ") for line in short) == 1
    long = " ".join(run_here("ls -v", COLUMNS="80").stdout.split())

    for text in (
        "name: sigma, type: number or a sum such as 1+2, default: 2, help: bandwidths",
        "lambda * auxiliary : cross-entropy at a uniform guess, by N: 10: 2.9, 1000: 97",
        "licence: MIT (OpenAI, openai/grade-school-math)",
        "hub: openai/gsm8k, revision: e53f048856ff4f594e959d75785d2c2d37b678ee",
        "distribution: smmd-bench, version: 0.1.0",
        "version: 3",
        "micro_batch_size that may fit, by GB of the GPU: 24: 16",
    ):
        assert text in long


@pytest.mark.parametrize("group", GROUPS)
def test_the_summary_is_the_same_whether_the_plugin_is_imported_or_not(group):
    listed = {item.name: item.summary for item in listing(group)}
    assert {item.name: item.summary for item in listing(group, whole=False)} == listed
    assert all(listed.values())


def test_a_plugin_that_fails_to_import_is_listed_with_its_error(tmp_path):
    write_distribution(tmp_path, "broken", "raise RuntimeError('out of order')")
    write_distribution(tmp_path, "mine", LOSS)
    odd = LOSS.replace("    def bind", "    sources: ClassVar = 5\n    def bind")
    write_distribution(tmp_path, "odd", odd.replace('"mine"', '"odd"'))
    output = call("ls losses", PYTHONPATH=str(tmp_path))
    assert output.returncode == 0
    assert output.stderr == ""
    assert "cannot be used: RuntimeError: out of order" in output.stdout
    assert "A loss of my own." in output.stdout

    as_json = call("ls losses --json", PYTHONPATH=str(tmp_path)).stdout
    losses = json.loads(as_json)["losses"]
    by_name = {loss["name"]: loss for loss in losses}
    assert by_name["broken"]["error"] == "RuntimeError: out of order"
    assert by_name["odd"]["error"].startswith(
        "its attributes cannot be read (TypeError: 'int' "
    )
    assert by_name["mine"]["parameters"][0]["name"] == "lambda"
    assert by_name["mine"]["origin"] == {
        "file": str(tmp_path / "mine.py"), "distribution": "mine-package", "version": "2.5",
    }  # fmt: skip
    assert by_name["mine"]["error"] is by_name["smmd"]["error"] is None
