"""Imports in a process of their own, so that a crash, a hang or a message is a finding.

The steps share one process, because they share most of what they import. Each says its facts as
lines of JSON as soon as it has them, so that what it said before it died counts; the steps after
one that took the process with it are tried again in another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

_BEGIN = """
import json, os, sys
def say(**facts): print("\\n" + json.dumps(facts), flush=True)
"""
_STEP = """
def {name}():
{body}
say(began="{name}")
try: {name}()
except BaseException as error: say({name}_failure=type(error).__name__ + ": " + str(error))
"""
_END = "\nsys.stderr.flush(); os._exit(0)  # to take everything down takes seconds"
_QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True, slots=True)
class Said:
    """What a step said; `failure`: why it did not end well (None: it did)."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    failure: str | None = None
    late: bool = False
    output: str = ""


def ask(steps: Mapping[str, str], seconds: float) -> dict[str, Said]:
    """Run pieces of Python code in which `say(name=value)` states facts, in order.

    `seconds` is the most that a process may take.
    """
    code = _BEGIN + "".join(_STEP.format(name=n, body=indent(c, "    ")) for n, c in steps.items())
    late, death = False, None
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code + _END],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            env={**os.environ, **_QUIET},
        )
        output = done.stdout.decode(errors="replace")
        if done.returncode < 0:
            death = f"the process is killed by {signal.Signals(-done.returncode).name}"
        elif done.returncode:
            death = f"the process ends with status {done.returncode}"
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        late, death = True, f"it takes more than {seconds:.0f} s"
    facts = _facts(output)
    begun = [name for name in steps if name in facts["began"]]
    said = {
        name: Said(
            facts, facts.get(f"{name}_failure") or (death if name == begun[-1] else None),
            late and name == begun[-1], output,
        )
        for name in begun
    }  # fmt: skip
    rest = {name: code for name, code in steps.items() if name not in said}
    if not begun:
        return dict.fromkeys(steps, Said({}, death or "it says nothing", late, output))
    if rest and late:
        return said | dict.fromkeys(rest, Said({}, death, late, output))
    return said | (ask(rest, seconds) if rest else {})


def _facts(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"began": []}
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                said = json.loads(line)
            except ValueError:  # a line of a library's
                continue
            found["began"] += [said.pop("began")] if "began" in said else []
            found |= {k: v if not isinstance(v, str) else " ".join(v.split())[:300]
                      for k, v in said.items()}  # fmt: skip
    return found
