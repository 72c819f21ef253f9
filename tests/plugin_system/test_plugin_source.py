"""A plugin that is not first-party is addressed by what its source does."""

import importlib
import sys
from pathlib import Path

import pytest

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.plugin_source import source_digest
from smmd_bench.scoring.measure import measure_identity

ROOT = Path(__file__).parents[2]
LOSS = (ROOT / "examples/own_loss.py").read_text(encoding="utf-8")
TASK = (ROOT / "examples/own_task.py").read_text(encoding="utf-8")
EVERY = {"train", "validate", "select", "decode", "measure"}


@pytest.fixture(autouse=True)
def own_modules():
    """Modules that no other test sees."""
    modules = {*sys.modules}
    yield
    for name in {*sys.modules} - modules:
        if name.startswith(("mylab", "smmd_bench_plugin_")):
            del sys.modules[name]


def load(file, text):
    """Load a plugin file as a new process would."""
    file.write_text(text, encoding="utf-8")
    registry._files.clear()
    registry.load_plugin_file(file)


def digest_of(file, text):
    load(file, text)
    return source_digest(type(registry.load_loss("huber")))


def test_first_party_plugins_have_none():
    for group in registry.GROUPS:
        for entry in registry.entries(group):
            assert entry.plugin is not None
            assert source_digest(entry.plugin) is None


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("        values = ", "        # V_num\n        values = ", False),
        ('    """', '    """Another text. ', False),
        ("\n\n\n", "\n", False),
        ("\n", "\r\n", False),
        ("0.5", "5e-1", False),
        ("return loss,", "return 2 * loss,", True),
        ("parameter(1.0", "parameter(0.25", True),
    ],
)
def test_an_edit_of_a_plugin_file_is_seen_and_a_comment_is_not(
    tmp_path, old, new, counts
):
    file = tmp_path / "mine.py"
    assert old in LOSS
    first = digest_of(file, LOSS)
    assert first is not None
    assert (digest_of(file, LOSS.replace(old, new)) != first) == counts
    assert digest_of(file, LOSS) == digest_of(tmp_path / "renamed.py", LOSS) == first


def test_a_plugin_of_a_package_counts_with_the_whole_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mylab").mkdir()
    digests = []
    for rates in ("RATE = 1\n", "RATE = 1  # of an hour\n", "RATE = 22\n"):
        for name, text in {"__init__": "", "loss": LOSS, "rates": rates}.items():
            (tmp_path / "mylab" / f"{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.startswith("mylab")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        digests.append(source_digest(importlib.import_module("mylab.loss").Huber))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("file", "names", "edit", "stages"),
    [
        (
            LOSS,
            ("arithmetic", "huber"),
            ("return loss,", "return 2 * loss,"),
            [set(), {"train"}],
        ),
        (
            LOSS,
            ("arithmetic", "ce"),
            ("return loss,", "return 2 * loss,"),
            [set(), set()],
        ),
        (TASK, ("doubling", "ce"), ("2 * ", "3 * "), [{"decode", "measure"}, EVERY]),
        (TASK, ("doubling", "ce"), ("2 * ", "2  * "), [set(), set()]),
    ],
)
def test_an_edit_changes_its_own_stages_of_the_base_and_of_a_cell(
    tmp_path, file, names, edit, stages
):
    digests = []
    for source in (file, file.replace(*edit)):
        load(tmp_path / "mine.py", source)
        digests.append([cell.parts for cell in Experiment(names[:1], names[1:]).cells])
    changed = [
        {stage for stage in before if before[stage] != after[stage]}
        for before, after in zip(*digests, strict=True)
    ]
    assert changed == stages


def test_a_metric_of_ones_own_counts_in_the_measurement(tmp_path):
    metric = (
        "from smmd_bench.contracts import ExactMatch\n"
        "class Strict(ExactMatch):\n    name = 'strict'\n"
        f"{TASK.replace('from __future__ import annotations', '')}"
    ).replace("ExactMatch()", "Strict()")
    load(tmp_path / "mine.py", metric)
    task = registry.load_task("doubling")
    digest = source_digest(type(task))
    identity = measure_identity(task)

    assert identity["task"] == ["doubling", [task.version, digest]]
    assert identity["metrics"]["strict"] == [[1, digest], {}]
    assert identity["metrics"]["parse_failure_rate"] == [1, {}]
