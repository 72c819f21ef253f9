"""torch, the GPU that it sees, and whether torchvision fits it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import requires
from typing import Any

from packaging.requirements import Requirement

from ...storage.sizes import spell_bytes
from .child import Said
from .finding import LONGER, Finding
from .libraries import installed

TORCH = """
import torch
gpus = []
if torch.cuda.is_available():
    for at in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(at)
        gpus.append({"name": torch.cuda.get_device_name(at), "free": free, "total": total})
say(torch=torch.__version__, cuda=torch.version.cuda or torch.version.hip, gpus=gpus)
"""
TORCHVISION = """
import importlib.util
from smmd_bench.models.torchvision_operators import operators_are_declared
if importlib.util.find_spec("torchvision"):
    import torchvision
    say(torchvision=torchvision.__version__, declared=operators_are_declared())
"""
_TORCH = "install it: pip install 'smmd-bench[gpu]', or 'smmd-bench[cpu]' without a GPU"
_OLDEST = (2, 9)


def torch_findings(torch: Said, torchvision: Said) -> list[Finding]:
    """Findings named torch, GPU and torchvision, of what the steps said."""
    if installed("torch") is None:
        return [Finding("torch", "problem", "it is not installed", _TORCH), *_gpu({})]
    if "torch" not in torch.facts and torch.late:
        text = f"{installed('torch')}: its import was not over in time ({torch.failure})"
        unknown = "not known: torch was not imported in time"
        return [Finding("torch", "note", text, LONGER), Finding("GPU", "note", unknown, LONGER)]
    if "torch" not in torch.facts:
        text = f"{installed('torch')} cannot be imported: {torch.failure}"
        remedy = "install torch again, in the build that this machine's driver supports"
        return [Finding("torch", "problem", text, remedy), *_gpu({})]
    vision = _torchvision(str(torch.facts["torch"]), torchvision)
    return [_torch(torch.facts), *_gpu(torch.facts), vision]


def _torch(facts: Mapping[str, Any]) -> Finding:
    built = f"CUDA {facts['cuda']}" if facts["cuda"] else "the CPU"
    text = f"{facts['torch']}, built for {built}"
    if tuple(int(part) for part in facts["torch"].split(".")[:2]) < _OLDEST:
        return Finding("torch", "problem", f"{text}; 2.9 or newer is needed", _TORCH)
    return Finding("torch", "ok", text)


def _gpu(facts: Mapping[str, Any]) -> list[Finding]:
    gpus = facts.get("gpus") or ()
    if gpus:
        return [
            Finding(
                "GPU",
                "ok",
                f"{gpu['name']}, {spell_bytes(gpu['free'])} free of {spell_bytes(gpu['total'])}",
            )
            for gpu in gpus
        ]
    names = _nvidia_smi()
    if names and facts and not facts["cuda"]:
        text, remedy = "but torch is built for the CPU", "pip install 'smmd-bench[gpu]'"
    elif names:
        text = "but torch cannot use it"
        remedy = "check the driver against torch's CUDA, and CUDA_VISIBLE_DEVICES"
    else:
        text = "none: training and decoding are on the CPU"
        remedy = "the built-in models are made for that; the paper's backbones need a GPU"
        return [Finding("GPU", "note", text, remedy)]
    return [Finding("GPU", "note", f"{', '.join(names)} is there, {text}", remedy)]


def _nvidia_smi() -> list[str]:
    """The names of the GPUs that the driver lists."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        out = subprocess.run(
            [program, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in out.stdout.splitlines() if line.strip() and not out.returncode]


def _torchvision(torch: str, said: Said) -> Finding:
    name, there, facts = "torchvision", installed("torchvision"), said.facts
    wanted = _pinned_torch()
    pair = f"pip install 'torch{wanted.specifier}' or the torchvision of " if wanted else ""
    remedy = f"{pair}torch {torch}; tasks of text do not need it"
    if there is None:
        return Finding(name, "note", "it is not installed: tasks with pictures may need it", remedy)
    if "torchvision" not in facts and said.late:
        text = f"{there}: its import was not over in time ({said.failure})"
        return Finding(name, "note", text, LONGER)
    if "torchvision" not in facts:
        return Finding(name, "problem", f"{there} cannot be imported: {said.failure}", remedy)
    if wanted and not wanted.specifier.contains(torch, prereleases=True):
        text = f"{there} is made for torch{wanted.specifier}, and torch is {torch}"
        return Finding(name, "problem", text, remedy)
    if not facts["declared"]:
        return Finding(name, "ok", f"{there}, of a pair with torch {torch}")
    text = f"{there} is built for CUDA; its missing operators are declared, so that it imports"
    return Finding(name, "ok", text)


def _pinned_torch() -> Requirement | None:
    """The torch that the installed torchvision names."""
    lines = (requires("torchvision") or ()) if installed("torchvision") else ()
    return next((one for one in map(Requirement, lines) if one.name == "torch"), None)
