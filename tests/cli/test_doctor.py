"""`smmd-bench doctor`: here, and on machines where something is amiss."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from smmd_bench.cli import cli
from smmd_bench.cli.examining import (
    examine,
    libraries,
    machine,
    network,
    plugins,
    storage,
    torches,
    vllms,
)
from smmd_bench.cli.examining.child import Said, ask
from smmd_bench.cli.examining.finding import Finding

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
NAMES = {
    "smmd-bench", "libraries", "memory", "cores", "torch", "GPU", "torchvision", "vLLM", "plugins",
    "cache", "hub cache", "disk", "network",
}  # fmt: skip


def test_here_everything_is_looked_at_and_vllm_can_be_used(tmp_path):
    environment = {**os.environ, "SMMD_BENCH_CACHE": str(tmp_path / "cache"), "NO_COLOR": "1"}
    out = subprocess.run(
        [COMMAND, "doctor", "--json"], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
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
    found = [Finding("GPU", state, "a [red] text", None if state == "ok" else "mend it")]
    monkeypatch.setattr(examine, "examine", lambda full: found)
    result = CliRunner().invoke(cli, ["doctor"], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, status)
    assert result.output.startswith(f"{state}  GPU  a [red] text")
    assert ("-> mend it" in result.output) == (state != "ok")
    assert "\x1b" not in result.output
    assert all(line == line.rstrip() for line in result.output.splitlines())


def test_a_step_that_crashes_is_a_finding_and_the_next_one_is_still_asked():
    crash = "say(before=1)\nimport signal\nos.kill(os.getpid(), signal.SIGSEGV)"
    said = ask({"bad": crash, "good": "print('{noise')\nsay(after=2)"}, 60)
    assert said["bad"].failure == "the process is killed by SIGSEGV"
    assert said["bad"].facts["before"] == 1
    assert (said["good"].failure, said["good"].facts["after"]) == (None, 2)


def test_a_step_that_raises_says_why_and_one_that_hangs_ends_in_time():
    steps = {"bad": "raise ImportError('libcudart.so: no\\nsuch file')", "slow": "while True: pass"}
    said = ask({**steps, "last": "say(after=2)"}, 3)
    assert said["bad"].failure == "ImportError: libcudart.so: no such file"
    assert not said["bad"].late
    assert (said["slow"].late, said["last"].late) == (True, True)


@pytest.mark.parametrize(
    ("said", "state", "words"),
    [
        (Said({"device": "cuda"}), "ok", "for cuda"),
        (Said({"device": ""}), "problem", "finds no device"),
        (Said({}, "ImportError: undefined symbol: x"), "problem", "undefined symbol: x"),
        (Said({}, "it takes more than 60 s", late=True), "note", "more than 60 s"),
        (
            Said({"device": "cuda"}, output="W Failed to import from vllm._C: ImportError('x')"),
            "problem",
            "without its kernels",
        ),
    ],
)
def test_vllm_can_be_used_or_it_is_said_why_not(said, state, words):
    finding = vllms.vllm_finding(said)
    assert finding.state == state
    assert words in finding.text
    assert state == "ok" or finding.remedy


def test_without_vllm_the_transformers_engine_is_the_remedy(monkeypatch):
    monkeypatch.setattr(vllms, "installed", lambda name: None)
    finding = vllms.vllm_finding(Said())
    assert (finding.state, "--engine transformers" in str(finding.remedy)) == ("note", True)


FACTS = {"torch": "2.13.0+cpu", "cuda": None, "gpus": []}


def findings_of(torch: Said, vision: Said) -> dict[str, Finding]:
    return {finding.name: finding for finding in torches.torch_findings(torch, vision)}


def test_torch_that_cannot_be_imported_is_a_problem():
    found = findings_of(Said({}, "OSError: libtorch.so"), Said())
    assert found["torch"].state == "problem"
    assert "OSError: libtorch.so" in found["torch"].text


def test_an_import_that_is_not_over_in_time_is_a_note():
    late = Said({}, "it takes more than 60 s", late=True)
    for found, names in (
        (findings_of(late, late), {"torch", "GPU"}),
        (findings_of(Said(FACTS), late), {"torchvision"}),
    ):
        for name in names:
            assert found[name].state == "note"
            assert "in time" in found[name].text
            assert "doctor --full" in str(found[name].remedy)


def test_a_gpu_is_named_with_its_memory():
    gpu = {"name": "NVIDIA H100", "free": 70 * 2**30, "total": 80 * 2**30}
    found = findings_of(Said({**FACTS, "cuda": "12.8", "gpus": [gpu]}), Said())
    assert found["GPU"].text == "NVIDIA H100, 70.0 GiB free of 80.0 GiB"
    assert found["torch"].text == "2.13.0+cpu, built for CUDA 12.8"


def test_a_gpu_that_torch_is_not_built_for_is_noted(monkeypatch):
    monkeypatch.setattr(torches, "_nvidia_smi", lambda: ["NVIDIA H100"])
    found = findings_of(Said(FACTS), Said())
    assert found["GPU"].state == "note"
    assert "torch is built for the CPU" in found["GPU"].text
    found = findings_of(Said({**FACTS, "cuda": "12.8"}), Said())
    assert "torch cannot use it" in found["GPU"].text


@pytest.mark.parametrize(
    ("pinned", "facts", "failure", "state", "words"),
    [
        ("2.13.0", {"declared": False}, None, "ok", "a pair"),
        ("2.12.0", {"declared": False}, None, "problem", "made for torch==2.12.0"),
        ("2.13.0", {"declared": True}, None, "ok", "built for CUDA"),
        ("2.13.0", None, "RuntimeError: operator torchvision::nms", "problem", "torchvision::nms"),
    ],
)
def test_torchvision_must_fit_torch(monkeypatch, pinned, facts, failure, state, words):
    monkeypatch.setattr(torches, "requires", lambda name: [f"torch=={pinned}", "numpy"])
    known = {} if facts is None else {"torchvision": "0.28.0", **facts}
    finding = findings_of(Said(FACTS), Said(known, failure))["torchvision"]
    assert finding.state == state
    assert words in finding.text


def test_a_library_that_is_missing_or_too_old_is_a_problem(monkeypatch):
    lines = ["peft>=99", "no-such-library>=1", "numpy>=1", "ray>=99; extra == 'ray'"]
    monkeypatch.setattr(libraries, "requires", lambda name: lines)
    found = [f for f in libraries.library_findings() if f.name == "libraries"]
    assert [(f.state, f.remedy) for f in found] == [
        ("problem", "pip install 'peft>=99'"),
        ("problem", "pip install 'no-such-library>=1'"),
    ]


def test_a_plugin_that_fails_to_import_is_a_problem_with_its_origin():
    rows = [["ce", "smmd-bench", None], ["mine", "my-package", "ImportError: no module named x"]]
    first, second = plugins.plugin_findings(Said({"plugins_losses": rows}))
    assert first.text == "1 can be used"
    assert second.state == "problem"
    assert "the loss 'mine' of my-package" in second.text
    assert "no module named x" in second.text


def test_a_plugin_that_takes_the_process_with_it_is_a_problem():
    (found,) = plugins.plugin_findings(Said({}, "the process is killed by SIGSEGV"))
    assert (found.state, "SIGSEGV" in found.text) == ("problem", True)


@pytest.mark.parametrize("where", ["distribution", "file"])
def test_the_plugin_that_takes_the_process_with_it_is_named(tmp_path, monkeypatch, where):
    file = tmp_path / "dying.py"
    file.write_text("import os\nos._exit(7)\n")
    if where == "distribution":
        facts = tmp_path / "dying_package-1.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: dying-package\nVersion: 1\n")
        (facts / "entry_points.txt").write_text("[smmd_bench.losses]\ndying = dying:Dying\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        named, remedy = "the loss 'dying' of dying-package", "mend or uninstall dying-package"
    else:
        monkeypatch.setattr(plugins, "plugin_files", lambda: [file])
        named, remedy = f"the plugin file {file}", f"mend {file}, or leave it out"
    said = ask({"plugins": plugins.plugins_code()}, 120)["plugins"]
    (found,) = plugins.plugin_findings(said)
    assert (found.state, found.remedy) == ("problem", remedy)
    assert f"the last of them {named}: the process ends with status 7" in found.text


def test_a_plugin_that_is_not_imported_in_time_is_a_note():
    loading = ["the loss 'slow' of a-package", "mend or uninstall a-package"]
    said = Said({"loading": loading}, "it takes more than 60 s", late=True)
    (found,) = plugins.plugin_findings(said)
    assert (found.state, "doctor --full" in str(found.remedy)) == ("note", True)
    assert "the loss 'slow' of a-package" in found.text


def test_plugin_files_are_among_the_plugins(monkeypatch):
    own = Path(__file__).parents[2] / "examples" / "own_loss.py"
    monkeypatch.setattr(plugins, "plugin_files", lambda: [own])
    said = ask({"plugins": plugins.plugins_code()}, 120)["plugins"]
    assert said.failure is None
    assert ["huber", str(own), None] in said.facts["plugins_losses"]


def test_a_cache_that_cannot_be_written_is_a_problem(monkeypatch, tmp_path):
    (tmp_path / "FILE").touch()
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "FILE"))
    found = {f.name: f for f in storage.storage_findings()}
    assert found["cache"].state == "problem"
    assert "SMMD_BENCH_CACHE" in str(found["cache"].remedy)


def test_a_cache_is_shown_with_its_size(monkeypatch, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"x" * 2048)
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))
    (cache,) = [f for f in storage.storage_findings() if f.name == "cache"]
    assert (cache.state, cache.text) == ("ok", f"{tmp_path}, 2.0 KiB")


@pytest.mark.parametrize(
    ("free", "state"), [(2**40, "ok"), (5 * 2**30, "note"), (2**20, "problem")]
)
def test_a_full_disk_is_a_problem_and_clean_the_remedy(monkeypatch, free, state):
    usage = SimpleNamespace(free=free, total=2**41, used=0)
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda place: usage)
    disks = [f for f in storage.storage_findings() if f.name == "disk"]
    assert {f.state for f in disks} == {state}
    assert state == "ok" or "smmd-bench clean" in str(disks[0].remedy)


def test_the_limits_of_a_container_are_those_that_count(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{2**30}\n")
    (tmp_path / "memory.current").write_text(f"{2**29}\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert machine.memory_finding().text == "512.0 MiB free of 1.0 GiB"
    cores = machine.cores_finding()
    assert (cores.state, cores.remedy) == ("note", "set OMP_NUM_THREADS=1")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine.cores_finding().state == "ok"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on this machine, which refuses every request, as the hub's."""

    class Refuses(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refuses)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_hub_that_answers_is_reached_whatever_it_says(hub):
    assert network.network_finding(5) == Finding("network", "ok", f"{hub} answers")


def test_to_be_offline_is_a_note(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    finding = network.network_finding(5)
    assert finding.state == "note"
    assert "cannot be reached" in finding.text
    assert "--data-dir" in str(finding.remedy)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    finding = network.network_finding(5)
    assert (finding.state, "HF_HUB_OFFLINE is set" in finding.text) == ("note", True)


def test_without_the_hub_library_its_cache_is_left_out(monkeypatch):
    assert "hub cache" in {finding.name for finding in storage.storage_findings()}
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", None)
    names = {finding.name for finding in storage.storage_findings()}
    assert "cache" in names
    assert "hub cache" not in names
