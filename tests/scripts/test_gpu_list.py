"""The list for a GPU, by its real command, on a CPU and tiny shapes."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from torch.autograd import DeviceType

from scripts.gpu_list import sum_kernels


def run_list(part, out, *words, minutes=20):
    """Run a part of the list; its results, and what it printed."""
    command = [
        sys.executable, "-m", "scripts.gpu_list", part, "--out", str(out), "--small",
        "--geometry", "tiny", "--steps", "4", "--engine", "transformers",
        "--minutes", str(minutes), *words,
    ]  # fmt: skip
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    file = out / f"{part}.json"
    return json.loads(file.read_text()) if file.exists() else {}, printed


@pytest.mark.slow
def test_a_row_that_fails_leaves_the_others_and_what_is_made_is_made_once(tmp_path):
    results, printed = run_list("b", tmp_path, "--only", "r, eager")
    assert "1 of 2, 1200 s left: tiny, transformers.Trainer, eager" in printed
    assert results["tiny, liger, eager"]["error"] == "status 1: not installed"
    stock = results["tiny, transformers.Trainer, eager"]
    assert stock["kernel_share"] is None
    assert stock["operations"]["aten.mm.default"] > 20

    again, printed = run_list("b", tmp_path, "--only", ", eager", minutes=0)
    assert again == results
    assert "Too little time" in printed
    assert "Trainer" not in printed
    # A row that was never tried comes before one that failed.
    assert printed.index("ce, eager") < printed.index("liger, eager")
    assert "not installed" in (tmp_path / "b.log").read_text()


@pytest.mark.slow
def test_two_trainings_and_casts_are_measured(tmp_path):
    for way in ("eager", "with casts", "two"):
        results, _ = run_list("b", tmp_path, "--only", f"y, ce, {way}")
    eager, casts, two = results.values()
    cast = "aten._to_copy.default"
    assert casts["operations"][cast] > eager["operations"][cast]
    rates = [1000 / training["ms"] for training in two["trainings"]]
    assert two["steps_a_second"] == pytest.approx(sum(rates))


@pytest.mark.slow
def test_the_image_and_the_stages_need_no_vllm(tmp_path):
    results, _ = run_list("a", tmp_path, "--only", "image")
    assert "torch" in results["image"]["packages"]
    results, _ = run_list("a", tmp_path, "--only", "lora")
    assert "decoded by transformers" in results["lora in bfloat16"]["text"]


@pytest.mark.slow
def test_a_killed_run_goes_on_and_its_adapter_is_asked_again(tmp_path):
    results, _ = run_list("c", tmp_path, "--only", "builtin/tiny")
    killed = results["builtin/tiny, killed run"]
    assert killed["killed"]
    assert killed["exact_match"] == results["builtin/tiny, run"]["exact_match"]
    flips = results["builtin/tiny, flips by transformers"]
    assert flips["base"]["again"] == flips["adapter"]["again"] == 0


def test_the_share_of_kernels_is_of_a_step_without_the_profiler():
    def event(device_type, is_user_annotation=False):
        return SimpleNamespace(
            device_type=device_type,
            is_user_annotation=is_user_annotation,
            self_device_time_total=6000,
            count=30,
        )

    kernel = event(DeviceType.CUDA)
    span = event(DeviceType.CUDA, is_user_annotation=True)
    host = event(DeviceType.CPU)
    share = sum_kernels([kernel, kernel, span, host], 8.0)
    assert share == pytest.approx(
        {"kernels": 20, "kernel_ms": 4.0, "kernel_share": 0.5}
    )
    assert set(sum_kernels([host], 8.0).values()) == {None}
