"""A plugin that is not first-party is addressed by what its source does."""

import importlib
import json
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.plugin_source import source_digest
from smmd_bench.results.frames import read_run
from smmd_bench.run.cell_json import describe_cells
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.scoring.measure import measure_identity

ROOT = Path(__file__).parents[2]
LOSS = (ROOT / "examples" / "own_loss.py").read_text(encoding="utf-8")
TASK = (ROOT / "examples" / "own_task.py").read_text(encoding="utf-8")
HELPED = LOSS.replace("from torch import", "import rates_of_mine\nfrom torch import", 1)
ENGINE = '''
from dataclasses import dataclass
from typing import ClassVar
@dataclass(frozen=True)
class Slow:
    """An engine of one's own."""
    name: ClassVar[str] = "slow"
    version: ClassVar[int] = 1
    def identity(self):
        return {"name": self.name}
    def open(self, base, settings): ...
'''


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """A registry, and modules, that no other test sees."""
    monkeypatch.setattr(registry, "_from_files", {group: {} for group in registry.GROUPS})
    monkeypatch.setattr(registry, "_files", [])
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name.startswith(("rates_of_mine", "mylab", "smmd_bench_plugin_")):
            del sys.modules[name]
    registry.points.cache_clear()
    for loader in (registry.load_task, registry.load_loss, registry.load_engine):
        loader.cache_clear()
    registry.engine_identity.cache_clear()


def load(file: Path, text: str | None = None) -> None:
    """Load a plugin file as a new process would."""
    if text is not None:
        file.write_text(text, encoding="utf-8")
    registry._files.clear()
    registry.load_plugin_file(file)


def digest_of(file: Path, text: str | None = None) -> str | None:
    load(file, text)
    return source_digest(type(registry.load_loss("huber")))


def test_first_party_plugins_have_none():
    for group in registry.GROUPS:
        for entry in registry.entries(group):
            assert entry.plugin is not None
            assert source_digest(entry.plugin) is None


def test_an_edit_of_a_plugin_file_is_seen_and_a_comment_is_not(tmp_path):
    file = tmp_path / "mine.py"
    first = digest_of(file, LOSS)
    assert first is not None
    commented = LOSS.replace("        values = ", "        # V_num\n        values = ")
    assert digest_of(file, commented) == first
    assert digest_of(file, LOSS.replace("return loss,", "return 2 * loss,")) != first
    assert digest_of(file, LOSS) == first
    assert digest_of(tmp_path / "renamed.py", LOSS) == first


def test_an_edit_within_the_second_is_run_and_not_its_bytecode(tmp_path):
    file = tmp_path / "mine.py"
    for default in (0.1, 0.2, 0.3):
        load(file, LOSS.replace("parameter(0.5", f"parameter({default}"))
        assert registry.load_loss("huber").weight == default


def test_modules_beside_a_plugin_file_count(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    helper = tmp_path / "rates_of_mine.py"
    digests = []
    for text in ("RATE = 1", "RATE = 1  # of an hour", "RATE = 2"):
        helper.write_text(text)
        digests.append(digest_of(tmp_path / "mine.py", HELPED))
    assert digests[0] == digests[1] != digests[2]
    (tmp_path / "unused.py").write_text("RATE = 3")
    assert digest_of(tmp_path / "mine.py") == digests[2]


def test_a_module_beside_it_counts_before_it_is_imported(tmp_path):
    """Its import may be in a function, after the plugin has put its folder on the path."""
    text = LOSS.replace(
        "        return _Huber(", "        import rates_of_mine\n        return _Huber("
    )
    digests = []
    for rate in (1, 2):
        (tmp_path / "rates_of_mine.py").write_text(f"RATE = {rate}")
        digests.append(digest_of(tmp_path / "mine.py", text))
    assert digests[0] != digests[1]


@pytest.mark.parametrize("library", ["elsewhere", "project/.venv/lib/python3.11/site-packages"])
def test_modules_of_others_do_not_count(tmp_path, monkeypatch, library):
    (tmp_path / "project").mkdir()
    (tmp_path / library).mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / library))
    digests = set()
    for text in ("RATE = 1", "RATE = 2"):
        (tmp_path / library / "rates_of_mine.py").write_text(text)
        digests.add(digest_of(tmp_path / "project" / "mine.py", HELPED))
    assert len(digests) == 1


def test_python_below_the_folder_of_a_plugin_does_not_count():
    from smmd_bench.plugin_system import plugin_source

    standard = Path(sysconfig.get_path("stdlib"))
    folder = standard.parent.parent.parent
    assert not plugin_source._is_in(standard / "random.py", folder)
    assert plugin_source._is_in(folder / "mine.py", folder)


def test_two_classes_of_one_file_share_the_digest(tmp_path):
    (tmp_path / "both.py").write_text(
        f"{LOSS}\n{TASK.replace('from __future__ import annotations', '')}"
    )
    load(tmp_path / "both.py")
    loss, task = registry.load_loss("huber"), registry.load_task("doubling")
    assert source_digest(type(loss)) == source_digest(type(task)) is not None


def write_distribution(folder: Path, *, editable: bool) -> Path:
    """A distribution of two top-level packages, of which one holds a loss; the folder of both."""
    code = folder / "project" / "src" if editable else folder / "site"
    for name in ("mylab", "mylab_rates"):
        (code / name).mkdir(parents=True)
        (code / name / "__init__.py").touch()
    (code / "mylab" / "loss.py").write_text(
        HELPED.replace("import rates_of_mine", "from mylab_rates import rates")
    )
    (code / "mylab_rates" / "rates.py").write_text("RATE = 1\n")
    metadata = folder / "site" / "mylab-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mylab\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[smmd_bench.losses]\nhuber = mylab.loss:Huber\n")
    files = [] if editable else [str(file.relative_to(code)) for file in code.glob("mylab*/*.py")]
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    if editable:
        content = {"url": (folder / "project").as_uri(), "dir_info": {"editable": True}}
        (metadata / "direct_url.json").write_text(json.dumps(content))
    return code


@pytest.mark.parametrize("editable", [False, True])
def test_an_installed_package_counts_with_all_of_its_distribution(tmp_path, monkeypatch, editable):
    code = write_distribution(tmp_path, editable=editable)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rates_of_mine.py").write_text("RATE = 1\n")
    for folder in {code, tmp_path / "site", tmp_path / "other"}:
        monkeypatch.syspath_prepend(str(folder))

    def digest():
        for name in [name for name in sys.modules if name.startswith("mylab")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        registry.points.cache_clear()
        registry.load_loss.cache_clear()
        return source_digest(type(registry.load_loss("huber")))

    first = digest()
    assert first is not None
    rates, loss = code / "mylab_rates" / "rates.py", code / "mylab" / "loss.py"
    rates.write_text("RATE = 1  # of an hour\n")
    assert digest() == first
    rates.write_text("RATE = 22\n")
    second = digest()
    assert second != first
    loss.write_text(f"{loss.read_text()}\nimport rates_of_mine\n")
    third = digest()
    assert third != second
    (tmp_path / "other" / "rates_of_mine.py").write_text("RATE = 22\n")
    assert digest() == third


def stages_of_an_edit(task: str, loss: str, file: Path, text: str, new: str) -> list[set[str]]:
    """The stages of the base and of the trained cell whose addresses an edit changes."""
    found = []
    for source in (text, new):
        load(file, source)
        found.append([cell.addresses for cell in Experiment((task,), (loss,)).cells])
    return [
        {stage for stage in before if before[stage] != after[stage]}
        for before, after in zip(*found, strict=True)
    ]


EVERY = {"train", "validate", "select", "decode", "measure"}


def test_an_edited_loss_is_trained_again(tmp_path):
    edit = (tmp_path / "mine.py", LOSS, LOSS.replace("return loss,", "return 2 * loss,"))
    assert stages_of_an_edit("arithmetic", "huber", *edit) == [set(), EVERY]
    assert stages_of_an_edit("arithmetic", "ce", *edit) == [set(), set()]


def test_an_edited_task_is_all_done_again_and_the_base_is_decoded_again(tmp_path):
    file, decoded = tmp_path / "mine.py", {"select", "decode", "measure"}
    edit, comment = TASK.replace("2 * ", "3 * "), TASK.replace("2 * ", "2  * ")
    assert stages_of_an_edit("doubling", "ce", file, TASK, edit) == [decoded, EVERY]
    assert stages_of_an_edit("doubling", "ce", file, TASK, comment) == [set(), set()]


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
    assert identity["metrics"]["strict"] == [1, digest]
    assert identity["metrics"]["parse_failure_rate"] == 1


def test_an_engine_of_ones_own_counts_in_its_identity(tmp_path):
    load(tmp_path / "slow.py", ENGINE)
    first = dict(registry.engine_identity("slow"))
    load(tmp_path / "slow.py", ENGINE.replace('"name": self.name', '"name": "slow"'))
    second = dict(registry.engine_identity("slow"))
    assert first.pop("source") != second.pop("source")
    assert first == second == {"name": "slow"}
    assert "source" not in registry.engine_identity("transformers")


def test_the_manifest_says_what_it_was_made_with(tmp_path):
    load(tmp_path / "mine.py", LOSS)
    load(tmp_path / "task.py", TASK)
    own = Experiment(("doubling",), ("ce", "huber"), engine="transformers")
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.claim([own])
    assert read_run(run.path).manifest["plugins"] == {
        "task doubling": [source_digest(type(registry.load_task("doubling")))],
        "loss huber": [source_digest(type(registry.load_loss("huber")))],
    }
    plain = replace(own, tasks=("arithmetic",), losses=("ce",))
    assert not any(content["plugins"] for content in describe_cells(plain.cells))
