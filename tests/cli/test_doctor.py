"""`smmd-bench doctor`: here, and on machines where something is wrong."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from smmd_bench.cli import cli, doctor
from smmd_bench.cli.doctor_checks import Finding, imports, libraries, machine
from smmd_bench.cli.doctor_checks.child_process import Said, ask

from .conftest import call, write_distribution
from .hub import hub

__all__ = ["hub"]

NAMES = {
    "smmd-bench", "libraries", "memory", "cores", "torch", "GPU", "torchvision", "vLLM", "plugins",
    "cache", "hub cache", "disk", "network",
}  # fmt: skip
LATE = Said({}, "it took more than 60 s", late=True)


def test_here_everything_is_looked_at_and_vllm_can_be_used(tmp_path):
    out = call("doctor", "--json", cwd=tmp_path, SMMD_BENCH_CACHE=str(tmp_path / "cache"))
    content = json.loads(out.stdout)
    findings = {finding["name"]: finding for finding in content["findings"]}
    assert set(findings) == NAMES
    assert findings["vLLM"]["state"] == "ok", findings["vLLM"]
    assert findings["torchvision"]["state"] == "ok", findings["torchvision"]
    assert all((f["state"] == "ok") == (f["remedy"] is None) for f in content["findings"])
    assert content["problems"] == sum(f["state"] == "problem" for f in content["findings"])
    assert out.returncode == (1 if content["problems"] else 0)
    assert {"python", "smmd-bench", "torch", "transformers"} <= set(content["versions"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("note", 0), ("problem", 1)])
def test_the_status_is_1_only_for_a_problem(monkeypatch, state, status):
    found = [Finding("GPU", state, "a [red] text", None if state == "ok" else "fix it")]
    monkeypatch.setattr(doctor, "examine", lambda full: found)
    result = CliRunner().invoke(cli, ["doctor"], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, status)
    assert result.output.startswith(f"{state}  GPU  a [red] text")
    assert ("-> fix it" in result.output) == (state != "ok")
    assert all(line == line.rstrip() for line in result.output.splitlines())


def test_code_that_crashes_raises_or_hangs_is_a_failure_with_what_it_said_before():
    crash = "say(before=1)\nimport signal\nos.kill(os.getpid(), signal.SIGSEGV)"
    assert ask(crash, 60) == Said(
        {"before": 1}, "SIGSEGV killed the process", output='\n{"before": 1}\n'
    )
    raises = ask("print('{noise')\nraise ImportError('libcudart.so: no\\nsuch file')", 60)
    assert (raises.failure, raises.late) == ("ImportError: libcudart.so: no such file", False)
    assert ask("while True: pass", 2).late
    assert ask("say(after=2)", 60).failure is None


FACTS = {"torch": "2.13.0+cpu", "cuda": None, "gpus": []}
VISION = {"torchvision": "0.28.0", "declared": False}
GPU = {"name": "NVIDIA H100", "free": 70 * 2**30, "total": 80 * 2**30}
CUDA = {**FACTS, **VISION, "cuda": "12.8"}
BUILD = "2.13.0+cpu, built for CUDA 12.8"
ASKED = "doctor --full"


def findings_of(said: Said) -> dict[str, Finding]:
    found = [imports.vllm_finding(said), *imports.torch_findings(said)]
    return {finding.name: finding for finding in found}


@pytest.mark.parametrize(
    ("name", "said", "state", "words"),
    [
        ("vLLM", Said({"device": "cuda"}), "ok", "for cuda"),
        ("vLLM", Said({"device": ""}), "problem", "for a GPU and finds none"),
        ("vLLM", Said({}, "ImportError: undefined symbol: x"), "problem", "undefined symbol: x"),
        ("vLLM", LATE, "note", "more than 60 s"),
        (
            "vLLM",
            Said({"device": "cuda"}, output="W Failed to import from vllm._C: ImportError('x')"),
            "problem",
            "without its kernels",
        ),
        ("torch", Said({}, "OSError: libtorch.so"), "problem", "OSError: libtorch.so"),
        ("torch", LATE, "note", ASKED),
        ("torchvision", Said(FACTS, LATE.failure, late=True), "note", ASKED),
        ("GPU", Said({**CUDA, "gpus": [GPU]}), "ok", "NVIDIA H100, 70.0 GiB free of 80.0 GiB"),
        ("torch", Said({**CUDA, "gpus": [GPU]}), "ok", BUILD),
        ("GPU", Said({**FACTS, **VISION}), "note", "built for the CPU"),  # which nvidia-smi lists
        ("GPU", Said(CUDA), "note", "cannot use"),
        ("torchvision", Said({**FACTS, **VISION}), "ok", "fits torch"),
        ("torchvision", Said({**FACTS, **VISION, "declared": True}), "ok", "built for CUDA"),
        (
            "torchvision",
            Said(FACTS, "RuntimeError: torchvision::nms"),
            "problem",
            "torchvision::nms",
        ),
    ],
)
def test_what_an_import_finds_is_a_finding(monkeypatch, name, said, state, words):
    monkeypatch.setattr(imports, "requires", lambda _: ["torch==2.13.0", "numpy"])
    monkeypatch.setattr(imports, "_nvidia_smi", lambda: ["NVIDIA H100"])
    finding = findings_of(said)[name]
    assert finding.state == state
    assert words in f"{finding.text} {finding.remedy}"
    assert bool(finding.remedy) == (state != "ok")


def test_torchvision_must_fit_torch(monkeypatch):
    monkeypatch.setattr(imports, "requires", lambda _: ["torch==2.12.0", "numpy"])
    finding = findings_of(Said({**FACTS, **VISION}))["torchvision"]
    assert (finding.state, "made for torch==2.12.0" in finding.text) == ("problem", True)


def test_without_vllm_the_transformers_engine_is_the_remedy(monkeypatch):
    monkeypatch.setattr(imports, "installed", lambda name: None)
    finding = imports.vllm_finding(Said())
    assert (finding.state, "--engine transformers" in str(finding.remedy)) == ("note", True)


def test_a_library_that_is_missing_or_too_old_is_a_problem(monkeypatch):
    lines = ["peft>=99", "no-such-library>=1", "numpy>=1", "ray>=99; extra == 'ray'"]
    monkeypatch.setattr(libraries, "requires", lambda name: lines)
    found = [f for f in libraries.library_findings() if f.name == "libraries"]
    assert [(f.state, f.remedy) for f in found] == [
        ("problem", "pip install 'peft>=99'"),
        ("problem", "pip install 'no-such-library>=1'"),
    ]


def test_a_plugin_that_fails_to_import_is_a_problem_and_a_slow_one_a_note():
    rows = [["ce", "smmd-bench", None], ["mine", "my-package", "ImportError: no module named x"]]
    first, second = imports.plugin_findings(Said({"plugins_losses": rows}))
    assert first.text == "1 can be used"
    assert second.state == "problem"
    assert "the loss 'mine' of my-package" in second.text
    assert "no module named x" in second.text
    loading = ["the loss 'slow' of a-package", "fix or uninstall a-package"]
    (found,) = imports.plugin_findings(Said({"loading": loading}, LATE.failure, late=True))
    assert (found.state, ASKED in str(found.remedy)) == ("note", True)
    assert "the loss 'slow' of a-package" in found.text


@pytest.mark.parametrize("where", ["distribution", "file"])
def test_the_plugin_that_kills_the_process_is_named(tmp_path, monkeypatch, where):
    source = "import os\nos._exit(7)\n"
    if where == "distribution":
        write_distribution(tmp_path, "dying", source)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        named, remedy = "the loss 'dying' of dying-package", "fix or uninstall dying-package"
    else:
        file = tmp_path / "dying.py"
        file.write_text(source)
        monkeypatch.setattr(imports, "plugin_files", lambda: [file])
        named, remedy = f"the plugin file {file}", f"fix {file}, or leave it out"
    (found,) = imports.plugin_findings(ask(imports.plugins_code(), 120))
    assert (found.state, found.remedy) == ("problem", remedy)
    assert f"the last of them {named}: the process ended with status 7" in found.text


def test_plugin_files_are_among_the_plugins(monkeypatch):
    own = Path(__file__).parents[2] / "examples" / "own_loss.py"
    monkeypatch.setattr(imports, "plugin_files", lambda: [own])
    said = ask(imports.plugins_code(), 120)
    assert said.failure is None
    assert ["huber", str(own), None] in said.facts["plugins_losses"]


def storage() -> dict[str, Finding]:
    return {finding.name: finding for finding in machine.storage_findings()}


def test_a_cache_has_a_size_or_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "FILE").write_bytes(b"x" * 2048)
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))
    assert (storage()["cache"].state, storage()["cache"].text) == ("ok", f"{tmp_path}, 2.0 KiB")
    assert "hub cache" in storage()
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", None)
    assert "hub cache" not in storage()
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "FILE"))
    assert storage()["cache"].state == "problem"
    assert "SMMD_BENCH_CACHE" in str(storage()["cache"].remedy)


@pytest.mark.parametrize(
    ("free", "state"), [(2**40, "ok"), (5 * 2**30, "note"), (2**20, "problem")]
)
def test_a_full_disk_is_a_problem_and_clean_the_remedy(monkeypatch, free, state):
    usage = SimpleNamespace(free=free, total=2**41, used=0)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda place: usage)
    disk = storage()["disk"]
    assert disk.state == state
    assert state == "ok" or "smmd-bench clean" in str(disk.remedy)


def test_the_limits_of_a_container_count(monkeypatch, tmp_path):
    monkeypatch.setattr("smmd_bench.run.machine._CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{2**30}\n")
    (tmp_path / "memory.current").write_text(f"{2**29}\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert machine.memory_finding().text == "512.0 MiB free of 1.0 GiB"
    cores = machine.cores_finding()
    assert (cores.state, cores.remedy) == ("note", "set OMP_NUM_THREADS=1")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine.cores_finding().state == "ok"


def test_a_hub_that_answers_is_reached_and_being_offline_is_a_note(hub, monkeypatch):
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    assert machine.network_finding(30) == Finding("network", "ok", f"{hub.address} answers")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    finding = machine.network_finding(30)
    assert (finding.state, "cannot be reached ([Errno" in finding.text) == ("note", True)
    assert "--data-dir" in str(finding.remedy)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    finding = machine.network_finding(5)
    assert (finding.state, "HF_HUB_OFFLINE is set" in finding.text) == ("note", True)
