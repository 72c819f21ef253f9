"""Every number of the paper's tables against its LaTeX, both ways."""

import os
import re
from itertools import product
from pathlib import Path

import pytest
import yaml
from smmd_bench.reports._paper import read_rows

BESIDE = Path(__file__).parents[3] / "shared" / "data"
TEX = Path(os.environ.get("SMMD_BENCH_DATA") or BESIDE).parent / "paper" / "smmd.tex"
PAPER = Path(__file__).parents[2] / "reports" / "paper.yaml"
TABLES = yaml.safe_load(PAPER.read_text(encoding="utf-8"))["tables"]
IN_TEXT = {"error_p90", "unfiltered_train", "unfiltered_test"}
FIVE, PAIR = ("ce", "gce", "ntl", "ntil", "smmd"), ("model", "task")
ABLATED = [("qwen2.5-1.5b", task) for task in ("gsm8k", "svamp", "arithmetic")]
ABLATED += [("qwen2.5-vl-3b", task) for task in ("clock_time", "chartqa")]
GROUPS = ("stem", "humanities", "social_sciences", "other", "average")
LAYOUTS = {
    "math_reasoning": (2, 2, ("model",), ("task", "loss"), [*product(("gsm8k", "svamp"), FIVE)]),
    "arithmetic": (1, 3, ("model", "loss"), ("metric",),
                   ["exact_match", "mean_absolute_error", "r_squared"]),
    "clock": (1, 3, ("model", "loss"), ("metric",), ["exact_match", "time_gap"]),
    "chartqa": (1, 1, ("model",), ("loss",), FIVE),
    "ablation": (1, 2, ("loss",), PAIR, ABLATED),
    "kernel_ablation": (1, 1, ("loss",), PAIR, ABLATED),
    "runtime": (1, 2, ("model", "loss"), ("metric",),
                ["step_time_ms", "step_time_ms_deviation", "memory_gb"]),
    "dataset_sizes": (1, 1, ("metric",), ("task",), [task for _, task in ABLATED]),
    "sigma": (2, 1, ("loss",), PAIR, ABLATED),
    "categories": (2, 1, ("metric",), ("loss",), ["ce", "smmd"]),
    "samsum": (1, 1, ("loss",), ("metric",), ["rouge1", "rouge2", "rougeL"]),
    "mmlu": (1, 1, ("loss",), ("metric",),
             [f"{group}{part}" for group in GROUPS for part in ("", "_error")]),
}  # fmt: skip
SPELLED = {
    "ours": "smmd", "0-0": "ce", "1-0": "smmd[term=mmd]", "0-1": "smmd[term=smooth]", "1-1": "smmd",
    "random-psd-kernel": "smmd[kernel=random,term=mmd]", "(2)": "smmd",
    "shuffled-mapping": "smmd[kernel=shuffled,term=mmd]",
    "distance-induced-(ours)": "smmd[term=mmd]", "training-set": "train", "test-set": "test",
    "sign-flip": "sign_flip", "near-miss": "near_miss", "total": "n",
    "scale-10^k-(any-k\\neq-0)": "scale", **{f"k={k}": f"scale_x10^{k}" for k in range(-2, 4)},
}  # fmt: skip


pytestmark = pytest.mark.skipif(
    not TEX.is_file(), reason="the paper's LaTeX is not here: set SMMD_BENCH_DATA to shared/data"
)


@pytest.fixture(scope="module")
def tex():
    """The LaTeX without its comments."""
    return re.sub(r"(?<!\\)%.*", "", TEX.read_text(encoding="utf-8"))


def cells(tex, label):
    """The rows of the table with a label, without rules and type."""
    body = tex[tex.index(rf"\label{{{label}}}") :]
    body = body[body.index(r"\begin{tabular}") : body.index(r"\end{tabular}")]
    body = re.sub(r"\\begin\{tabular\}\{[^}]*\}", "", body)
    body = re.sub(r"\\(top|mid|bottom)rule|\\cmidrule\(lr\)\{[^}]*\}|\\quad", "", body)
    body = re.sub(r"\\multirow\{\d\}\{\*\}|\\multicolumn\{\d\}\{[^}]*\}", "", body)
    body = re.sub(r"\\makecell\[l\]\{(.*?)\\\\\((.*?)\)\}", r"\1 \2", body)
    body = body.replace(r"\cmark", "1").replace(r"\xmark", "0").replace(r"\,", "")
    body = re.sub(r"\\(textbf|underline|mathbf)(?=\{)", "", body)
    body = re.sub(r"\\times|\$", "", body).replace(r"\{", "(").replace(r"\}", ")")
    lines = [re.sub(r"[{}]", "", line).split("&") for line in body.split(r"\\")]
    return [[" ".join(cell.split()) for cell in line] for line in lines if "".join(line).strip()]


def numbers(line):
    """All numbers of some cells."""
    found = re.findall(r"(\d+(?:\.\d+)?)([kM]?)", " ".join(line))
    return [round(float(value) * {"k": 1e3, "M": 1e6}.get(unit, 1), 9) for value, unit in found]


def key_of(label):
    """A label as `paper.yaml` spells it."""
    key = re.sub(r"\.0\b", "", "-".join(label.split()).lower())
    sigma = key.strip("()").replace(",", "+")
    return SPELLED.get(key, f"smmd[sigma={sigma}]" if key.startswith("(") else key)


def printed(table, tex):
    """{the key of each row: its numbers}."""
    heading, width, row, *_ = LAYOUTS[table]
    found, model = {}, ""
    for line in cells(tex, TABLES[table]["label"])[heading:]:
        labels = line[:width]
        if row == ("model", "loss"):
            model = " ".join(labels[:-1]).strip() or model
            key = (key_of(model), key_of(labels[-1]))
        else:
            key = (key_of(" ".join(labels)),)
        assert key not in found
        found[key] = numbers(line[width:])
    return found


def ours(table):
    """The same of `paper.yaml`."""
    _, _, row, column, columns = LAYOUTS[table]
    found = {}
    for entry in read_rows(table):
        for metric, value in entry.items():
            if metric not in {*PAIR, "loss", *IN_TEXT} and value is not None:
                named = {**entry, "metric": metric}
                at = tuple(named[name] for name in column)
                key = tuple(named[name] for name in row)
                found.setdefault(key, {})[at] = float(value)
    order = [at if isinstance(at, tuple) else (at,) for at in columns]
    assert {at for values in found.values() for at in values} == {*order}
    return {key: [values[at] for at in order if at in values] for key, values in found.items()}


def test_every_table_of_the_paper_is_compared_and_none_is_left_out(tex):
    assert set(LAYOUTS) == set(TABLES) - IN_TEXT
    assert sorted(TABLES[name]["number"] for name in LAYOUTS) == list(range(1, 13))
    labels = set(re.findall(r"\\label\{(tab:[^}]*)\}", tex))
    assert labels == {TABLES[name]["label"] for name in LAYOUTS}


@pytest.mark.parametrize("table", LAYOUTS)
def test_a_table_has_the_papers_numbers_and_no_others(table, tex):
    found = printed(table, tex)
    if table == "categories":  # counts with shares, and a total of both losses
        (total,) = found.pop(("n",))
        for key, (*values,) in found.items():
            assert values[1::2] == [round(100 * count / total, 2) for count in values[::2]]
            found[key] = values[::2]
        found["n",] = [total, total]
    assert ours(table) == found


def test_the_90th_percentiles_of_the_text(tex):
    said = re.search(r"decreases from ([\d.]+) \(CE\) to ([\d.]+) \(Ours\)", " ".join(tex.split()))
    assert said is not None
    kept = [row["p90"] for row in read_rows("error_p90")]
    assert [float(value) for value in said.groups()] == kept == [168.40, 150.00]
