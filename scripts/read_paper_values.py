"""Read every number of the paper's tables from its LaTeX into tests/data/paper_values.csv.

    python scripts/read_paper_values.py smmd.tex

One row a number: table, label, model, task, loss, metric, value, spelled as in reports/paper.yaml,
with which `tests/reports/test_published_values.py` compares the file. What a table says only in its
caption or in the text around it, such as its one task, is in LAYOUTS.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

CSV = Path(__file__).parents[1] / "tests" / "data" / "paper_values.csv"
FIELDS = ("table", "label", "model", "task", "loss", "metric", "value")
QWEN = "qwen2.5-1.5b"
FIVE = ("ce", "gce", "ntl", "ntil", "smmd")
PAIRS = [
    *((QWEN, task) for task in ("gsm8k", "svamp", "arithmetic")),
    ("qwen2.5-vl-3b", "clock_time"),
    ("qwen2.5-vl-3b", "chartqa"),
]
GROUPS = ("stem", "humanities", "social_sciences", "other", "average")


class Layout(NamedTuple):
    """How a table is laid out: lines of its heading, columns of labels, what the labels of a row
    and the columns of numbers name, and what holds of all of its numbers."""

    label: str
    heading: int
    width: int
    row: Sequence[str]
    column: Sequence[str]
    columns: Sequence[Sequence[str]]
    constant: Mapping[str, str] = {}


def name_each(*names: str) -> list[tuple[str]]:
    """Columns that one name each describes."""
    return [(name,) for name in names]


BOTH, EXACT = ("model", "loss"), {"metric": "exact_match"}
LAYOUTS = {
    "math_reasoning": Layout(
        "math_reasoning", 2, 2, ("model",), ("task", "loss"), [*product(("gsm8k", "svamp"), FIVE)],
        EXACT,
    ),
    "arithmetic": Layout(
        "arith_narrow", 1, 3, BOTH, ("metric",),
        name_each("exact_match", "mean_absolute_error", "r_squared"), {"task": "arithmetic"},
    ),
    "clock": Layout(
        "clock_narrow", 1, 3, BOTH, ("metric",), name_each("exact_match", "time_gap"),
        {"task": "clock_time"},
    ),
    "chartqa": Layout(
        "chartqa_acc", 1, 1, ("model",), ("loss",), name_each(*FIVE), {"task": "chartqa", **EXACT}
    ),
    "ablation": Layout(
        "ablation_mmd_sobolev", 1, 2, ("loss",), ("model", "task"), PAIRS, EXACT
    ),
    "kernel_ablation": Layout("kernel_ablation", 1, 1, ("loss",), ("model", "task"), PAIRS, EXACT),
    "runtime": Layout(
        "runtime", 1, 2, BOTH, ("metric",),
        name_each("step_time_ms", "step_time_ms_deviation", "memory_gb"), {"task": "gsm8k"},
    ),
    "dataset_sizes": Layout(
        "dataset_sizes", 1, 1, ("metric",), ("task",), name_each(*(task for _, task in PAIRS))
    ),
    "sigma": Layout("sigma_ablation", 2, 1, ("loss",), ("model", "task"), PAIRS, EXACT),
    "categories": Layout(
        "gsm8k_scale_categories", 2, 1, ("metric",), ("loss",), name_each("ce", "smmd"),
        {"model": QWEN, "task": "gsm8k"},
    ),
    "samsum": Layout(
        "samsum", 1, 1, ("loss",), ("metric",), name_each("rouge1", "rouge2", "rougeL"),
        {"model": QWEN, "task": "samsum"},
    ),
    "mmlu": Layout(
        "mmlu", 1, 1, ("loss",), ("metric",),
        name_each(*(f"{group}{part}" for group in GROUPS for part in ("", "_error"))),
        {"model": QWEN, "task": "mmlu"},
    ),
}  # fmt: skip
"""By the name of the table in reports/paper.yaml."""
SPELLED = {
    "ours": "smmd",
    "0-0": "ce",
    "1-0": "smmd[term=mmd]",
    "0-1": "smmd[term=smooth]",
    "1-1": "smmd",
    "random-psd-kernel": "smmd[kernel=random,term=mmd]",
    "shuffled-mapping": "smmd[kernel=shuffled,term=mmd]",
    "distance-induced-(ours)": "smmd[term=mmd]",
    "(2)": "smmd",
    "training-set": "train",
    "test-set": "test",
    "sign-flip": "sign_flip",
    "near-miss": "near_miss",
    "total": "n",
    "scale-10^k-(any-k\\neq-0)": "scale",
    **{f"k={k}": f"scale_x10^{k}" for k in range(-2, 4)},
}
"""What the labels of rows are called here."""
P90 = r"decreases from ([\d.]+) \(CE\) to ([\d.]+) \(Ours\)"


def read_values(tex: str) -> list[dict[str, object]]:
    """Every number of the tables, in their order, and the percentiles of the text."""
    tex = re.sub(r"(?<!\\)%.*", "", tex)
    labels = set(re.findall(r"\\label\{tab:([^}]*)\}", tex))
    if labels != {layout.label for layout in LAYOUTS.values()}:
        raise SystemExit(
            f"The paper has these tables, and LAYOUTS others: {sorted(labels)}."
        )

    values: list[dict[str, object]] = []
    for table, layout in LAYOUTS.items():
        shared = {"table": table, "label": f"tab:{layout.label}", **layout.constant}
        for names, numbers in read_rows(tex, layout):
            if table == "categories":
                numbers = check_shares(names["metric"], numbers)
            for columns, number in zip(layout.columns, numbers, strict=True):
                places = dict(zip(layout.column, columns, strict=True))
                # SVAMP has no training set here.
                if not math.isnan(number):
                    values.append({**shared, **names, **places, "value": number})

    in_text = re.search(P90, " ".join(tex.split()))
    if in_text is None:
        raise SystemExit(
            "The text does not give the 90th percentiles of the error any more."
        )
    shared = {"table": "error_p90", "model": QWEN, "task": "gsm8k", "metric": "p90"}
    for loss, digits in zip(("ce", "smmd"), in_text.groups(), strict=True):
        values.append({**shared, "loss": loss, "value": float(digits)})
    return values


def read_rows(tex: str, layout: Layout) -> Iterator[tuple[dict[str, str], list[float]]]:
    """What the labels of each row name, and its numbers."""
    model = ""
    for cells in split_table(tex, layout.label)[layout.heading :]:
        labels = cells[: layout.width]
        texts = [" ".join(labels)]
        # A model stands once, over the rows of its losses.
        if layout.row == BOTH:
            model = " ".join(labels[:-1]).strip() or model
            texts = [model, labels[-1]]
        keys = map(spell_label, texts)
        yield (
            dict(zip(layout.row, keys, strict=True)),
            read_numbers(cells[layout.width :]),
        )


def split_table(tex: str, label: str) -> list[list[str]]:
    """The cells of the rows of a table, without rules and type."""
    body = tex[tex.index(rf"\label{{tab:{label}}}") :]
    body = body[body.index(r"\begin{tabular}") : body.index(r"\end{tabular}")]
    body = re.sub(r"\\begin\{tabular\}\{[^}]*\}", "", body)
    body = re.sub(r"\\(top|mid|bottom)rule|\\cmidrule\(lr\)\{[^}]*\}|\\quad", "", body)
    body = re.sub(r"\\multirow\{\d\}\{\*\}|\\multicolumn\{\d\}\{[^}]*\}", "", body)
    body = re.sub(r"\\makecell\[l\]\{(.*?)\\\\\((.*?)\)\}", r"\1 \2", body)

    # Of a table of marks a row is named by which terms it has.
    body = body.replace(r"\cmark", "1").replace(r"\xmark", "0").replace(r"\,", "")
    body = re.sub(r"\\(textbf|underline|mathbf)(?=\{)", "", body)
    body = re.sub(r"\\times|\$", "", body).replace(r"\{", "(").replace(r"\}", ")")
    rows = [re.sub(r"[{}]", "", row).split("&") for row in body.split(r"\\")]
    return [
        [" ".join(cell.split()) for cell in row] for row in rows if "".join(row).strip()
    ]


def read_numbers(cells: Sequence[str]) -> list[float]:
    """All numbers of some cells: `7.47k` is 7470, and `--` is no number."""
    units = {"k": 1e3, "M": 1e6}
    numbers = []
    for digits, unit in re.findall(r"(--|\d+(?:\.\d+)?)([kM]?)", " ".join(cells)):
        number = math.nan if digits == "--" else float(digits)
        numbers.append(round(number * units.get(unit, 1), 9))
    return numbers


def spell_label(label: str) -> str:
    """A label as `paper.yaml` spells it."""
    key = re.sub(r"\.0\b", "", "-".join(label.split()).lower())
    if key in SPELLED or not key.startswith("("):
        return SPELLED.get(key, key)
    bandwidths = key.strip("()").replace(",", "+")
    return f"smmd[sigma={bandwidths}]"


def check_shares(
    category: str, numbers: Sequence[float], total: float = 1319
) -> list[float]:
    """The counts of a row of counts and shares; the total is one number of both losses."""
    if category == "n":
        return [*numbers, *numbers]
    counts = [*numbers[::2]]
    if [round(100 * count / total, 2) for count in counts] != [*numbers[1::2]]:
        raise SystemExit(
            f"The shares of {category} are not those of its counts: {numbers}."
        )
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tex", type=Path, help="the LaTeX of the paper")
    tex = parser.parse_args().tex.read_text(encoding="utf-8")
    with CSV.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(read_values(tex))
