"""`smmd-bench doctor`: what works here, what does not, and how to fix it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from subprocess import PIPE, STDOUT, Popen, TimeoutExpired, run
from threading import Timer

import click

from . import options
from .voice import new_console, print_json

# Warnings of libraries would hide the line that is looked for.
_PYTHON = (sys.executable, "-W", "ignore")
_STAGES = (("lora", "bfloat16"), ("full", "float32"))
_OF_VLLM = re.compile(r"canary of .*|.*attention backend.*|.*[Mm]odel [Rr]unner V.*")
_DRIVERS = {12: 525, 13: 580}
"""The oldest NVIDIA driver for a major version of CUDA."""
_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}
# Programs for processes of their own: a library that crashes takes no doctor with it.
_TORCH = """
import torch
build = torch.version.cuda or torch.version.hip
said = f"{torch.__version__}, for {build or 'the CPU'}"
try:
    names = [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())]
except Exception as error:
    raise SystemExit(f"{said}, {' '.join(str(error).split())}")
print(said, *names, sep=", ")
"""
_VLLM = """
from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.models.cards import model_card
from smmd_bench.plugin_system.registry import load_engine
from smmd_bench.models.tokenizers import load_tokenizer
base = model_card("builtin/tiny").folder
prompt = load_tokenizer(base).encode("1 + 1 =")
with load_engine("vllm[eager=true]").open(base, EngineSettings(max_model_length=64)) as session:
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
@click.option(
    "--gpu",
    is_flag=True,
    help="Also train, decode and check once on this machine: about two minutes.",
)
@options.as_json
@options.plugin
def command(*, gpu: bool, as_json: bool) -> int:
    """Say what works here, and how to fix the rest.

    --gpu trains the built-in checkpoint, with LoRA in bfloat16 and fully in float32, and decodes it
    by vLLM, on the GPU or else on the CPU.

    \b
    Examples:
      smmd-bench doctor
      smmd-bench doctor --gpu --json
    """
    console, findings = new_console(), []
    # A finding is shown when it is there: all of them take minutes.
    for one in examine(stages=_STAGES if gpu else ()):
        findings.append(one)
        if not as_json:
            console.print(f"{one.state:<7}", style=_STYLES[one.state], end="  ")
            console.print(f"{one.name:<10}  {one.text}", soft_wrap=True)
        if one.remedy and not as_json:
            console.print(f"-> {one.remedy}", style="bold", soft_wrap=True)
    problems = sum(one.state == "problem" for one in findings)
    if as_json:
        print_json(
            {"problems": problems, "findings": [asdict(one) for one in findings]}
        )
    return 1 if problems else 0


def examine(stages: Sequence[tuple[str, str]] = ()) -> Iterator[Finding]:
    """Look at everything; torch and vLLM take half a minute. stages: methods and dtypes to run."""
    from ..plugin_system.registry import GROUPS, entries

    software = f"{version('smmd-bench')}, Python {platform.python_version()}, {platform.platform()}"
    yield Finding("smmd-bench", "ok", software)
    torch = "pip install 'smmd-bench[gpu]', or 'smmd-bench[cpu]' where there is no GPU"
    torch_finding = try_code("torch", _TORCH, torch)
    yield torch_finding
    # Without the name of a build, torch cannot be imported.
    has_build = re.search(r", for (\d|the CPU)", torch_finding.text)
    if has_build and (driver := find_driver()) is not None:
        yield check_driver(driver, torch_finding.text)
    yield try_code("vLLM", _VLLM, f"{torch}; or give --engine transformers")
    broken = [entry for group in GROUPS for entry in entries(group) if entry.error]
    for entry in broken:
        text = f"{entry.name} of {entry.origin} cannot be used: {entry.error}"
        yield Finding("plugins", "problem", text, f"fix or uninstall {entry.origin}")
    if not broken:
        yield Finding("plugins", "ok", "all can be used")
    for method, dtype in stages:
        # Compilation and CUDA graphs make a start long, and show nothing more.
        yield from try_stages(method, dtype, "vllm[eager=true]")


def try_code(name: str, code: str, remedy: str, seconds: float = 300) -> Finding:
    """Run code in a process of its own, whose last line is the finding; a crash is a problem."""
    try:
        process = run(
            [*_PYTHON, "-c", code],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except TimeoutExpired:
        # A slow disk or a busy machine is no fault of the library.
        return Finding(name, "note", f"it took more than {seconds:.0f} s", remedy)
    if process.returncode == 0:
        lines = process.stdout.strip().splitlines()
        return Finding(name, "ok", lines[-1])

    # A traceback is indented but for its first line and its last, which has the error.
    errors = [
        line for line in process.stderr.splitlines() if line and not line[0].isspace()
    ]
    why = f"the process ended with status {process.returncode}"
    if errors:
        why = errors[-1]
    return Finding(name, "problem", f"it cannot be used: {why[:300]}", remedy)


def try_stages(
    method: str, dtype: str, engine: str, seconds: float = 600
) -> Iterator[Finding]:
    """Run every stage in a process of its own: a finding for each part, as soon as it ends, and one
    for all. That has deviations of canaries, vLLM's backend and runner; where the process fails or
    takes too long, the end of its log."""
    from ..maintenance.smoke import PARTS

    name = f"{method} {dtype}"
    remedy = "VLLM_USE_V2_MODEL_RUNNER=0 in the environment, or --engine transformers"
    lines: list[str] = []
    ended: list[str] = []
    with Popen(
        [*_PYTHON, "-m", "smmd_bench.maintenance.smoke", method, dtype, engine],
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
        # At this level vLLM says which backend and runner it takes.
        env={"VLLM_LOGGING_LEVEL": "INFO", **os.environ},
    ) as process:
        # Nobody else sends this signal: the status tells it from a lack of memory.
        timer = Timer(seconds, process.send_signal, [signal.SIGALRM])
        # At its own end, the doctor waits for no timer.
        timer.daemon = True
        timer.start()
        for line in filter(str.strip, process.stdout or ()):
            lines.append(line.rstrip())
            part, _, text = lines[-1].partition(": ")
            if part in PARTS:
                ended.append(part)
                yield Finding(f"{name} {part}", "ok", text)

    # The cause may stand far above the end of a log of several processes.
    log = "\n".join(lines[-60:])
    if process.returncode == -signal.SIGALRM:
        running = PARTS[len(ended)]
        log = (
            f"it took more than {seconds:.0f} s: {running} was running, and "
            f"{', '.join(ended) or 'nothing'} had ended\n{log}"
        )
    if process.returncode:
        yield Finding(name, "problem", log, remedy)
    else:
        matches = filter(None, map(_OF_VLLM.search, lines))
        seen = [match[0].strip() for match in matches]
        yield Finding(name, "ok", "\n".join([lines[-1], *seen]))


def find_driver() -> str | None:
    """The version of the NVIDIA driver; None: there is none."""
    if (program := shutil.which("nvidia-smi")) is None:
        return None
    words = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    process = run(words, capture_output=True, text=True, check=False)
    # Each GPU has a line, and all of them one driver.
    return process.stdout.split("\n", maxsplit=1)[0].strip() or None


def check_driver(driver: str, torch: str) -> Finding:
    """Whether a driver runs the CUDA that `torch`, the text of its finding, was built for."""
    # A GPU with a driver, and a torch that cannot use it, is hardly meant.
    if (cuda := re.search(r"for (\d+)\.\d+", torch)) is None:
        text = f"NVIDIA driver {driver}, and torch ({torch}) is a build for the CPU"
        return Finding("driver", "problem", text, "pip install 'smmd-bench[gpu]'")
    least = _DRIVERS.get(int(cuda[1]), 0)
    if int(driver.partition(".")[0]) >= least:
        return Finding("driver", "ok", f"NVIDIA driver {driver}")
    text = f"NVIDIA driver {driver} is too old for CUDA {cuda[1]}: torch needs {least} or newer"
    return Finding(
        "driver", "problem", text, "update the driver, or install older torch and vLLM"
    )
