"""`smmd-bench doctor`: what works here, what does not, and how to fix it."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version

import click

from . import options
from .voice import new_console, print_json

_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}
_TORCH = """
import torch
names = [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())]
build = torch.version.cuda or torch.version.hip
print(torch.__version__, "for " + build if build else "for the CPU", *names, sep=", ")
"""
_VLLM = """
from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.models.cards import model_card
from smmd_bench.plugin_system.registry import load_engine
from smmd_bench.models.tokenizers import load_tokenizer
base = model_card("builtin/tiny").folder
prompt = load_tokenizer(base).encode("1 + 1 =")
with load_engine("vllm").open(base, EngineSettings(max_model_length=64)) as session:
    session.generate([prompt], Checkpoint("base", "base", base), max_new_tokens=4)
import vllm
print(vllm.__version__, "decodes the built-in checkpoint")
"""


@dataclass(frozen=True)
class Finding:
    """What the doctor says about one thing; it has a remedy unless it is ok."""

    name: str
    state: str  # ok, note or problem
    text: str
    remedy: str | None = None


@click.command()
@options.as_json
@options.plugin
def command(*, as_json: bool) -> int:
    """Say what works here, and how to fix the rest.

    \b
    Examples:
      smmd-bench doctor
    """
    console, findings = new_console(), []
    for one in examine():
        findings.append(one)
        if not as_json:
            console.print(f"{one.state:<7}", style=_STYLES[one.state], end="  ")
            console.print(f"{one.name:<10}  {one.text}", soft_wrap=True)
        if one.remedy and not as_json:
            console.print(f"-> {one.remedy}", style="bold", soft_wrap=True)
    problems = sum(one.state == "problem" for one in findings)
    if as_json:
        print_json({"problems": problems, "findings": [asdict(one) for one in findings]})
    return 1 if problems else 0


def examine() -> Iterator[Finding]:
    """Look at everything; torch and vLLM take half a minute."""
    from ..plugin_system.registry import GROUPS, entries

    own = f"{version('smmd-bench')}, Python {platform.python_version()}, {platform.platform()}"
    yield Finding("smmd-bench", "ok", own)
    torch = "pip install 'smmd-bench[gpu]', or 'smmd-bench[cpu]' where there is no GPU"
    yield try_code("torch", _TORCH, torch)
    yield try_code("vLLM", _VLLM, f"{torch}; or give --engine transformers")
    broken = [entry for group in GROUPS for entry in entries(group) if entry.error]
    for entry in broken:
        text = f"{entry.name} of {entry.origin} cannot be used: {entry.error}"
        yield Finding("plugins", "problem", text, f"fix or uninstall {entry.origin}")
    if not broken:
        yield Finding("plugins", "ok", "all can be used")


def try_code(name: str, code: str, remedy: str, seconds: float = 300) -> Finding:
    """Run code in a process of its own, whose last line is the finding; a crash is a problem."""
    try:
        words = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Finding(name, "note", f"it took more than {seconds:.0f} s", remedy)
    if done.returncode == 0:
        return Finding(name, "ok", done.stdout.strip().splitlines()[-1])
    errors = [line for line in done.stderr.splitlines() if line and not line[0].isspace()]
    why = errors[-1] if errors else f"the process ended with status {done.returncode}"
    return Finding(name, "problem", f"it cannot be used: {why[:300]}", remedy)
