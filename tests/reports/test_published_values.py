"""Every number of the paper's tables, and those of its text, against its LaTeX, both ways."""

import os
import re
from itertools import product
from pathlib import Path

import pytest
import yaml
from smmd_bench.reports._paper import rows

BESIDE = Path(__file__).parents[3] / "shared" / "data"
TEX = Path(os.environ.get("SMMD_BENCH_DATA") or BESIDE).parent / "paper" / "smmd.tex"
PAPER = Path(__file__).parents[2] / "reports" / "paper.yaml"
TABLES = yaml.safe_load(PAPER.read_text(encoding="utf-8"))["tables"]
IN_TEXT = {"error_p90", "unfiltered_train", "unfiltered_test"}
"""What stands in no table of the paper: a table of `paper.yaml`, and two keys of another."""
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
"""Lines of its heading, cells with labels, what the rows and the columns are, and the columns."""
SPELLED = {
    "ours": "smmd", "0-0": "ce", "1-0": "smmd[term=mmd]", "0-1": "smmd[term=smooth]", "1-1": "smmd",
    "random-psd-kernel": "smmd[kernel=random,term=mmd]", "(2)": "smmd",
    "shuffled-mapping": "smmd[kernel=shuffled,term=mmd]",
    "distance-induced-(ours)": "smmd[term=mmd]", "training-set": "train", "test-set": "test",
    "sign-flip": "sign_flip", "near-miss": "near_miss", "total": "n",
    "scale-10^k-(any-k\\neq-0)": "scale", **{f"k={k}": f"scale_x10^{k}" for k in range(-2, 4)},
}  # fmt: skip
"""Labels of the paper that are no model or loss in lower case."""

pytestmark = pytest.mark.skipif(
    not TEX.is_file(), reason="the paper's LaTeX is not here: set SMMD_BENCH_DATA to shared/data"
)


@pytest.fixture(scope="module")
def tex():
    """The LaTeX without its comments."""
    return re.sub(r"(?<!\\)%.*", "", TEX.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def prose(tex):
    """The text in one line."""
    return " ".join(tex.split())


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
    for entry in rows(table):
        for metric, value in entry.items():
            if metric not in {*PAIR, "loss", *IN_TEXT} and value is not None:
                named = {**entry, "metric": metric}
                at = tuple(named[name] for name in column)
                key = tuple(named[name] for name in row)
                found.setdefault(key, {})[at] = float(value)
    order = [at if isinstance(at, tuple) else (at,) for at in columns]
    assert {at for values in found.values() for at in values} == {*order}
    return {key: [values[at] for at in order if at in values] for key, values in found.items()}


def published(table, loss, task="gsm8k", model="qwen2.5-1.5b"):
    (row,) = (
        row
        for row in rows(table)
        if (row.get("model", model), row["task"], row.get("loss", loss)) == (model, task, loss)
    )
    return row


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


@pytest.mark.parametrize("table", ["math_reasoning", "chartqa"])
def test_the_columns_of_losses_stand_in_that_order(table, tex):
    heading = cells(tex, TABLES[table]["label"])[LAYOUTS[table][0] - 1]
    losses = [key_of(label) for label in heading if label not in ("", "Model")]
    assert losses == [*FIVE] * (len(losses) // 5)


def test_ce_on_gsm8k_is_kept_as_it_is_printed_in_three_places(prose):
    counts = published("categories", "ce")
    kept = [
        published("math_reasoning", "ce")["exact_match"],
        published("ablation", "ce")["exact_match"],
        round(100 * counts["exact"] / counts["n"], 2),
    ]
    assert kept == [54.99, 54.97, 55.04]
    assert all(f"{value:.2f}" in prose for value in kept)


def test_the_90th_percentiles_of_the_text(prose):
    said = re.search(r"decreases from ([\d.]+) \(CE\) to ([\d.]+) \(Ours\)", prose)
    assert said is not None
    kept = [published("error_p90", loss)["p90"] for loss in ("ce", "smmd")]
    assert [float(value) for value in said.groups()] == kept == [168.40, 150.00]


def test_the_sizes_of_chartqa_before_filtering(prose):
    said = re.search(r"ChartQA contains ([\d.]+)k/([\d.]+)k train/test examples before", prose)
    assert said is not None
    row = published("dataset_sizes", "ce", "chartqa")
    kept = [row["unfiltered_train"], row["unfiltered_test"]]
    assert [round(1000 * float(value)) for value in said.groups()] == kept


SENTENCES = [
    (r"Qwen2.5-1.5B increases from (\S+)\\% to (\S+)\\% Acc", "math_reasoning", "gsm8k",
     "qwen2.5-1.5b", "exact_match", ("ce", "smmd")),
    (r"surpassing both NTL \((\S+)\\%\) and NTIL \((\S+)\\%\)", "math_reasoning", "gsm8k",
     "qwen2.5-1.5b", "exact_match", ("ntl", "ntil")),
    (r"Llama3-8B rises from (\S+)\\% to (\S+)\\% Acc", "math_reasoning", "svamp", "llama3-8b",
     "exact_match", ("ce", "smmd")),
    (r"Ministral-3-3B it improves Acc from (\S+)\\% to (\S+)\\%", "clock", "clock_time",
     "ministral-3-3b", "exact_match", ("ce", "smmd")),
    (r"cuts Time Gap from (\S+) to (\S+) minutes", "clock", "clock_time", "ministral-3-3b",
     "time_gap", ("ce", "smmd")),
    (r"gain on Qwen2.5-VL-7B from (\S+)\\% to (\S+)\\%", "chartqa", "chartqa", "qwen2.5-vl-7b",
     "exact_match", ("ce", "smmd")),
    (r"exact matches \((\d+)\$\\rightarrow\$(\d+)\)", "categories", "gsm8k", "qwen2.5-1.5b",
     "exact", ("ce", "smmd")),
    (r"near-misses \((\d+)\$\\rightarrow\$(\d+)\)", "categories", "gsm8k", "qwen2.5-1.5b",
     "near_miss", ("ce", "smmd")),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "table", "task", "model", "metric", "losses"), SENTENCES)
def test_what_the_text_repeats_is_what_the_tables_say(
    sentence, table, task, model, metric, losses, prose
):
    said = re.search(sentence, prose)
    assert said is not None
    kept = [published(table, loss, task, model)[metric] for loss in losses]
    assert [float(value) for value in said.groups()] == kept


def test_the_overheads_of_the_text_follow_from_the_table(prose):
    said = re.search(r"over CE: \$(\S+)\\%\$ on .*? and \$(\S+)\\%\$ on SmolLM3-3B", prose)
    assert said is not None
    kept = []
    for model in ("qwen2.5-1.5b", "smollm3-3b"):
        times = [published("runtime", loss, model=model)["step_time_ms"] for loss in ("smmd", "ce")]
        kept.append(round(100 * (times[0] / times[1] - 1), 2))
    assert [float(value) for value in said.groups()] == kept
