"""All findings; what imports much does so in one process, beside the rest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from .child import ask
from .finding import Finding
from .libraries import library_findings
from .machine import cores_finding, memory_finding
from .network import network_finding
from .plugins import plugin_findings, plugins_code
from .storage import storage_findings
from .torches import TORCH, TORCHVISION, torch_findings
from .vllms import FULL, VLLM, vllm_finding

_IMPORT_SECONDS, _FULL_SECONDS = 60.0, 240.0
_HUB_SECONDS = 2.0


def examine(*, full: bool = False) -> list[Finding]:
    """Look at everything; `full` also imports all of vLLM, which takes half a minute."""
    seconds = _FULL_SECONDS if full else _IMPORT_SECONDS
    steps = {
        "torch": TORCH,
        "torchvision": TORCHVISION,
        "vllm": VLLM + FULL * full,
        "plugins": plugins_code(),
    }
    with ThreadPoolExecutor(max_workers=3) as pool:
        imports = pool.submit(ask, steps, seconds)
        network = pool.submit(network_finding, _HUB_SECONDS)
        storage = pool.submit(storage_findings)
        found = [*library_findings(), memory_finding(), cores_finding()]
        said = imports.result()
        found += torch_findings(said["torch"], said["torchvision"])
        found += [vllm_finding(said["vllm"], full=full), *plugin_findings(said["plugins"])]
        return [*found, *storage.result(), network.result()]
