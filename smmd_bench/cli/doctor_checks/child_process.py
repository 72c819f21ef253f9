"""Code in a process of its own, so that a crash, a hang or a message becomes a finding."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

_CODE = """
import json, os, sys
def say(**facts): print("\\n" + json.dumps(facts), flush=True)
try:
{body}
except BaseException as error: say(failure=type(error).__name__ + ": " + str(error))
sys.stderr.flush()
os._exit(0)  # a regular exit takes seconds
"""
_QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True, slots=True)
class Said:
    """What code said before it ended. `failure`: why it did not end well; None: it did."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    failure: str | None = None
    late: bool = False
    output: str = ""


def ask(code: str, seconds: float) -> Said:
    """Run Python code in which `say(name=value)` states facts; it has so many seconds."""
    death, late = None, False
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _CODE.format(body=indent(code, "    "))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            env={**os.environ, **_QUIET},
        )
        output = done.stdout.decode(errors="replace")
        if done.returncode < 0:
            death = f"{signal.Signals(-done.returncode).name} killed the process"
        elif done.returncode:
            death = f"the process ended with status {done.returncode}"
    except subprocess.TimeoutExpired as error:
        output, late = (error.stdout or b"").decode(errors="replace"), True
        death = f"it took more than {seconds:.0f} s"
    facts: dict[str, Any] = {}
    for line in output.splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # a line that a library prints
            continue
        if isinstance(said, dict):
            facts |= said
    failure = facts.pop("failure", None)
    return Said(facts, death if failure is None else " ".join(failure.split())[:300], late, output)
