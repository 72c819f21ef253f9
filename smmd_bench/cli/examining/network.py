"""Whether the hub can be reached. To be offline is no fault: everything can be given as folders."""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.request

from .finding import Finding

_HUB = "https://huggingface.co"
_TRUE = ("1", "true", "yes", "on")
_REMEDY = (
    "fetch data with `smmd-bench prepare` where there is a network; give copies with --data-dir, "
    "and checkpoints as folders with --model"
)


def network_finding(seconds: float) -> Finding:
    """Ask the hub for a word, for so many seconds at most."""
    hub = os.environ.get("HF_ENDPOINT") or _HUB
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(variable, "").lower() in _TRUE:
            text = f"{variable} is set: nothing is fetched from the hub"
            return Finding("network", "note", text, f"unset it to fetch; or {_REMEDY}")
    answer: list[str | None] = []
    thread = threading.Thread(  # a name server can keep one waiting beyond every timeout
        target=lambda: answer.append(_why_not(hub, seconds)), daemon=True
    )
    thread.start()
    thread.join(seconds + 0.5)
    reason = answer[0] if answer else f"no answer within {seconds:g} s"
    if reason is None:
        return Finding("network", "ok", f"{hub} answers")
    return Finding("network", "note", f"{hub} cannot be reached ({reason})", _REMEDY)


def _why_not(hub: str, seconds: float) -> str | None:
    """Why the hub does not answer; None: it does, whatever it says."""
    try:
        request = urllib.request.Request(hub, method="HEAD")
        with urllib.request.urlopen(request, timeout=seconds):
            return None
    except urllib.error.HTTPError:
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return " ".join(str(reason).split()) or type(error).__name__
