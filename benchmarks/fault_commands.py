"""The commands of `benchmarks.faults`, and the files that they find."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conftest import DATA

_TRAIN = (
    "train-eval --losses ce,smmd --engine transformers --executor in_process --epochs 2 "
    "--set batch_size=8 --set micro_batch_size=8 --set save_minutes=0 --train-examples 24 "
    "--validation-examples 4 --test-examples 8 --quiet --out run"
)


@dataclass(frozen=True)
class Command:
    """A command on a folder; `before` is the command whose folder it finds there, and `every` n-th
    fault is tried. `cache` is its cache folder, if faults shall meet it there."""

    words: str
    every: int = 1
    before: str | None = None
    cache: str | None = None


_TASK = "arithmetic[level=easy,operations=1]"
COMMANDS = {
    "train-eval": Command(f"{_TRAIN} --task {_TASK}", 16),
    "train-eval of pictures": Command(f"{_TRAIN} --task clock_time", 160),
    "plan": Command("plan experiment.yaml --out run"),
    "score": Command(f"score --task {_TASK} --predictions ce.jsonl --limit 8 --out run", 3),
    "report": Command("report run --quiet", 3, "train-eval"),
    "merge": Command("report run run --out merged", 6, "train-eval"),
    "clean": Command("clean run --what all --yes", 1, "train-eval"),
    "regress": Command(
        "regress run --suite samsum --limit 2 --losses smmd --engine hf --executor in_process "
        "--data-dir . --quiet",
        8,
        "train-eval",
    ),
    "sample": Command("sample clock_time -n 6", 1, cache="run"),
}
INPUTS = {
    "experiment.yaml": f"name: plan\ntasks: ['{_TASK}']\nlosses: [ce, smmd]\nseeds: [0, 1, 2]\n",
    "ce.jsonl": "".join(f'{{"id": {n}, "completion": "The answer is {n}"}}\n' for n in range(8)),
    "samsum/test.json": (DATA / "samsum" / "test.json").read_text(encoding="utf-8"),
}
