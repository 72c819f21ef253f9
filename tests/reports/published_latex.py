"""The tables of the paper's LaTeX as values by model, task, loss and metric, for comparison.

Nothing here comes from `paper.yaml` but the spelling of its keys: each table is read by its label,
row by row, in the layout in which the paper sets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Key = tuple[str | None, str, str | None, str]
"""Model, task, loss, metric."""

LOSSES = {"CE": "ce", "GCE": "gce", "NTL": "ntl", "NTIL": "ntil", "Ours": "smmd", "SMMD": "smmd"}
MODELS = {
    "Qwen2.5 0.5B": "qwen2.5-0.5b",
    "Qwen2.5 1.5B": "qwen2.5-1.5b",
    "Qwen2.5-1.5B": "qwen2.5-1.5b",
    "SmolLM3 3B": "smollm3-3b",
    "SmolLM3-3B": "smollm3-3b",
    "Llama3 8B": "llama3-8b",
    "Qwen2.5-VL 3B": "qwen2.5-vl-3b",
    "Qwen2.5-VL 7B": "qwen2.5-vl-7b",
    "Ministral-3 3B": "ministral-3-3b",
    "Llama-3.2-Vision 11B": "llama-3.2-vision-11b",
}
TEXT, VISION = "qwen2.5-1.5b", "qwen2.5-vl-3b"
ABLATION = [
    (TEXT, "gsm8k"), (TEXT, "svamp"), (TEXT, "arithmetic"), (VISION, "clock_time"),
    (VISION, "chartqa"),
]  # fmt: skip
TERMS = {"00": "ce", "10": "smmd[term=mmd]", "01": "smmd[term=smooth]", "11": "smmd"}
KERNELS = {
    "Random": "smmd[kernel=random,term=mmd]",
    "Shuffled": "smmd[kernel=shuffled,term=mmd]",
    "Distance-induced": "smmd[term=mmd]",
}


def cells(tex: str, label: str) -> list[list[str]]:
    """The rows of the table with a label, without rules, comments and type."""
    tex = re.sub(r"(?<!\\)%.*", "", tex)
    body = tex[tex.index(rf"\label{{{label}}}") :]
    body = body[body.index(r"\begin{tabular}") : body.index(r"\end{tabular}")]
    body = re.sub(r"\\begin\{tabular\}\{[^}]*\}", "", body)
    body = re.sub(r"\\(top|mid|bottom)rule|\\cmidrule\(lr\)\{[^}]*\}|\\quad", "", body)
    body = re.sub(r"\\multirow\{\d\}\{\*\}", "", body)
    body = re.sub(r"\\makecell\[l\]\{(.*?)\\\\\((.*?)\)\}", r"\1 \2", body)
    body = body.replace(r"\cmark", "1").replace(r"\xmark", "0").replace(r"\,", "")
    body = re.sub(r"\\(textbf|underline|mathbf)(?=\{)", "", body)
    body = re.sub(r"\\times|\$", "", body).replace(r"\{", "(").replace(r"\}", ")")
    rows = [re.sub(r"[{}]", "", row).split("&") for row in body.split(r"\\")]
    return [[" ".join(cell.split()) for cell in row] for row in rows if "".join(row).strip()]


def values(tex: str, table: str, label: str) -> dict[Key, float]:
    """All numbers of a table that is called so in `paper.yaml`."""
    found: dict[Key, float] = {}
    for key, text in READERS[table](cells(tex, label)):
        assert key not in found, f"{table} has {key} twice"
        found[key] = float(text)
    return found


def _math(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    losses = [LOSSES[name] for name in rows[1][2:]]
    tasks = ["gsm8k"] * 5 + ["svamp"] * 5
    for name, size, *numbers in rows[2:]:
        for task, loss, text in zip(tasks, losses, numbers, strict=True):
            yield (MODELS[f"{name} {size}"], task, loss, "exact_match"), text


def _by_model(task: str, metrics: list[str]) -> object:
    def read(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
        model = ""
        for name, size, loss, *numbers in rows[1:]:
            model = MODELS[f"{name} {size}"] if name else model
            for metric, text in zip(metrics, numbers, strict=True):
                yield (model, task, LOSSES[loss], metric), text

    return read


def _charts(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    for name, *numbers in rows[1:]:
        for loss, text in zip(rows[0][1:], numbers, strict=True):
            yield (MODELS[name], "chartqa", LOSSES[loss], "exact_match"), text


def _ablation(rows: list[list[str]], losses: list[str], heads: int) -> Iterator[tuple[Key, str]]:
    for row, loss in zip(rows, losses, strict=True):
        for (model, task), text in zip(ABLATION, row[heads:], strict=True):
            yield (model, task, loss, "exact_match"), text


def _terms(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    return _ablation(rows[1:], [TERMS[row[0] + row[1]] for row in rows[1:]], 2)


def _kernels(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    return _ablation(rows[1:], [KERNELS[row[0].split()[0]] for row in rows[1:]], 1)


def _bandwidths(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    losses = []
    for row in rows[2:]:
        sigma = "+".join(f"{float(value):g}" for value in row[0].strip("()").split(","))
        losses.append("smmd" if sigma == "2" else f"smmd[sigma={sigma}]")
    return _ablation(rows[2:], losses, 1)


def _runtime(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    model = ""
    for name, loss, time, memory in rows[1:]:
        model = MODELS[name] if name else model
        mean, deviation = time.split(r"\pm")
        key = (model, "gsm8k", LOSSES[loss])
        yield (*key, "step_time_ms"), mean
        yield (*key, "step_time_ms_deviation"), deviation
        yield (*key, "memory_gb"), memory


def _sizes(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    factors = {"k": 1000, "M": 1_000_000}
    for split, row in zip(("train", "test"), rows[1:], strict=True):
        for (_, task), text in zip(ABLATION, row[1:], strict=True):
            if text != "--":
                yield (None, task, None, split), str(round(float(text[:-1]) * factors[text[-1]]))


def _categories(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    names = ["exact", "sign_flip", "scale", *(f"scale_x10^{k}" for k in (-2, -1, 1, 2, 3))]
    names += ["near_miss", "catastrophic", "other"]
    losses = ("ce", "smmd")
    for name, (_, *numbers) in zip(names, rows[2:-1], strict=True):
        for loss, count, share in zip(losses, numbers[::2], numbers[1::2], strict=True):
            assert share == f"{100 * int(count) / 1319:.2f}"
            yield (TEXT, "gsm8k", loss, name), count
    total = rows[-1][1][-4:]  # after \multicolumn{4}{c}
    for loss in losses:
        yield (TEXT, "gsm8k", loss, "n"), total


def _rouge(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    for loss, *numbers in rows[1:]:
        for metric, text in zip(("rouge1", "rouge2", "rougeL"), numbers, strict=True):
            yield (TEXT, "samsum", LOSSES[loss], metric), text


def _mmlu(rows: list[list[str]]) -> Iterator[tuple[Key, str]]:
    groups = ("stem", "humanities", "social_sciences", "other", "average")
    for loss, *numbers in rows[1:]:
        for group, text in zip(groups, numbers, strict=True):
            value, error = text.split(r"\pm")
            yield (TEXT, "mmlu", LOSSES[loss], group), value
            yield (TEXT, "mmlu", LOSSES[loss], f"{group}_error"), error


READERS = {
    "math_reasoning": _math,
    "arithmetic": _by_model("arithmetic", ["exact_match", "mean_absolute_error", "r_squared"]),
    "clock": _by_model("clock_time", ["exact_match", "time_gap"]),
    "chartqa": _charts,
    "ablation": _terms,
    "kernel_ablation": _kernels,
    "runtime": _runtime,
    "dataset_sizes": _sizes,
    "sigma": _bandwidths,
    "categories": _categories,
    "samsum": _rouge,
    "mmlu": _mmlu,
}
