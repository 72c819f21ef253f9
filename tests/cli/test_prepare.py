"""`smmd-bench prepare` with checkpoints: of a folder, and of a small hub on this machine."""

import shutil
from pathlib import Path

import pytest

from ..conftest import DATA
from .conftest import call, run_here
from .hub import hub

__all__ = ["hub"]


def online(hub, home):
    """The variables that point the hub's client at a server of this machine."""
    local = {"HF_HUB_OFFLINE": "0", "HF_TOKEN": "", "NO_PROXY": "127.0.0.1"}
    return {"HF_ENDPOINT": hub.address, "HF_HOME": str(home), **local}


def test_a_checkpoint_is_fetched_once_and_never_its_pickle(hub, tmp_path):
    environment = online(hub, tmp_path)
    first = call("prepare arithmetic --model someone/whole", **environment)
    assert first.returncode == 0, first.stderr
    assert "arithmetic: nothing to fetch" in first.stdout
    output, folder = first.stdout.splitlines()[1:]
    assert (
        output == "someone/whole: 3,903,488 weights in 1 of safetensors, 15.6 MB, mit"
    )
    folder = Path(folder.strip())
    assert (folder / "model.safetensors").exists()
    assert not (folder / "pytorch_model.bin").exists()
    assert "pytorch_model" not in " ".join(hub.asked)

    hub.asked.clear()
    again = call("prepare --model someone/whole", **environment)
    assert again.stdout == first.stdout.partition("\n")[2]
    assert not any("resolve" in path and "safetensors" in path for path in hub.asked)

    offline = call("prepare --model someone/whole -q", HF_HOME=str(tmp_path))
    assert offline.returncode == 0
    assert offline.stdout == f"{folder}\n"
    local = run_here(f"prepare --model {folder} --model builtin/tiny")
    assert "3,903,488 weights in 1 of safetensors, 15.6 MB, mit" in local.stdout
    assert "Apache-2.0, part of smmd-bench" in local.stdout


@pytest.mark.long
def test_a_plan_fetches_no_weights(hub, tmp_path):
    plan = (
        "train-eval --task arithmetic --losses ce --model someone/whole --train-examples 8 "
        f"--test-examples 4 --out {tmp_path / 'run'} --dry-run"
    )
    out = call(plan, **online(hub, tmp_path / "home"))
    assert out.returncode == 0, out.stderr
    assert "1 to train" in out.stdout
    assert not list((tmp_path / "home").rglob("*.safetensors"))
    assert any(path.endswith("model.safetensors") for path in hub.asked)  # its header


def test_a_local_copy_is_counted_and_its_pictures_are_opened(tmp_path):
    copy = Path(shutil.copytree(DATA / "chartqa", tmp_path / "copy"))
    words = f"prepare chartqa[source=official] --data-dir {copy}"
    complete = run_here(words, SMMD_BENCH_CACHE=str(tmp_path))
    assert complete.returncode == 0
    assert complete.stderr == ""
    assert "chartqa train: 13 examples" in complete.stdout

    picture = copy / "ChartQA Dataset/test/png/1057.png"
    content = picture.read_bytes()
    picture.write_bytes(content[:60])
    broken = run_here(words, SMMD_BENCH_CACHE=str(tmp_path))
    assert broken.returncode == 2
    assert "1057.png cannot be read" in broken.stderr
