import json
import subprocess
import sys
from pathlib import Path

import pytest

from smmd_bench.plugin_system.registry import GROUPS

from .conftest import call

LOSS = '''
from dataclasses import dataclass
from typing import ClassVar
from smmd_bench.contracts import parameter

@dataclass(frozen=True)
class Own:
    """A loss of a distribution of its own."""
    name: ClassVar[str] = "own"
    version: ClassVar[int] = 7
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = parameter(4.0, "weight", name="lambda")
    def bind(self, vocabulary): ...
'''


def distribution(folder: Path, name: str, source: str) -> None:
    """An installed distribution with one loss."""
    (folder / f"{name}.py").write_text(source)
    facts = folder / f"{name}_package-2.5.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 2.5\n")
    (facts / "entry_points.txt").write_text(f"[smmd_bench.losses]\n{name} = {name}:Own\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    site.mkdir()
    return site


def test_a_line_a_plugin_and_everything_with_v() -> None:
    short = call("ls", COLUMNS="80").stdout.splitlines()
    words = {line.split()[0] for line in short}
    assert {
        *GROUPS,
        "models",
        "arithmetic",
        "ntl",
        "smmd",
        "vllm",
        "local",
        "builtin/tiny",
    } <= words
    assert max(map(len, short)) <= 80
    assert sum(line.startswith("  smmd ") for line in short) == 1
    long = " ".join(call("ls", "-v", COLUMNS="80").stdout.split())
    for text in (
        "sigma=2 (number or a sum such as 1+2) bandwidths of the kernel",
        "lambda * auxiliary : cross-entropy at a uniform guess: 2.9 (N=10), 97 (N=1000)",
        "licence MIT (OpenAI, openai/grade-school-math)",
        "sources openai/gsm8k e53f048856ff4f594e959d75785d2c2d37b678ee",
        "from smmd-bench 0.1.0",
        "gsm8k version 2",
        "micro_batch_size on a GPU of 24 GB: 16",
    ):
        assert text in long


def test_a_plugin_that_fails_to_import_is_shown_and_breaks_nothing(
    site: Path, tmp_path: Path
) -> None:
    distribution(site, "broken", "raise RuntimeError('mended tomorrow')")
    distribution(site, "own", LOSS)
    environment = {"PYTHONPATH": str(site), "SMMD_BENCH_CACHE": str(tmp_path / "cache")}
    for _ in range(2):  # read, and then kept
        shown = call("ls", "losses", **environment)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "cannot be used: RuntimeError: mended tomorrow" in " ".join(shown.stdout.split())
        assert "A loss of a distribution of its own." in shown.stdout
        losses = json.loads(call("ls", "losses", "--json", **environment).stdout)["losses"]
        found = {loss["name"]: loss for loss in losses}
        assert found["broken"]["error"] == "RuntimeError: mended tomorrow"
        assert found["own"] == {
            "name": "own",
            "summary": "A loss of a distribution of its own.",
            "version": 7,
            "parameters": [
                {"name": "lambda", "type": "number", "default": "4", "help": "weight"}
            ],
            "licence": None,
            "sources": [],
            "scales": {},
            "scales_of": None,
            "origin": {
                "file": str(site / "own.py"),
                "distribution": "own-package",
                "version": "2.5",
            },
            "error": None,
        }  # fmt: skip
    (site / "broken.py").write_text(LOSS.replace('"own"', '"broken"'))
    (site / "own.py").write_text(LOSS.replace("of its own", "that was edited"))
    losses = json.loads(call("ls", "losses", "--json", **environment).stdout)["losses"]
    found = {loss["name"]: loss for loss in losses}
    assert found["broken"]["error"] is None
    assert found["own"]["summary"] == "A loss of a distribution that was edited."


def test_a_plugin_file_is_listed_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(LOSS)
    out = call("ls", "losses", "--json", "--plugin", file)
    (found,) = [loss for loss in json.loads(out.stdout)["losses"] if loss["name"] == "own"]
    assert found["origin"] == {"file": str(file)}


def test_json_has_every_group_and_the_models() -> None:
    content = json.loads(call("ls", "--json").stdout)
    assert [*content] == [*GROUPS, "models"]
    assert {model["name"] for model in content["models"]} >= {"builtin/tiny", "Qwen/Qwen2.5-1.5B"}


def test_a_known_listing_imports_no_torch() -> None:
    call("ls")  # keeps it
    code = (
        "import sys; sys.argv = ['smmd-bench', 'ls', '-v'];\n"
        "from smmd_bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'pandas', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("sources: ClassVar = 5", "TypeError: 'int' object is not iterable"),
        ("relative_scale: ClassVar = 5", "AttributeError: 'int' object has no attribute 'items'"),
        ("relative_scale: ClassVar = {10: float('nan')}", "ValueError: relative_scale is not"),
    ],
)
def test_an_odd_attribute_is_the_error_of_its_plugin_alone(
    site: Path, tmp_path: Path, attribute: str, said: str
) -> None:
    distribution(site, "own", LOSS.replace("    def bind", f"    {attribute}\n    def bind"))
    environment = {"PYTHONPATH": str(site), "SMMD_BENCH_CACHE": str(tmp_path / "cache")}
    for _ in range(2):  # read, and then kept
        out = call("ls", "losses", "--json", **environment)
        assert (out.returncode, out.stderr) == (0, "")
        found = {loss["name"]: loss for loss in json.loads(out.stdout)["losses"]}
        assert found["own"]["error"].startswith(f"its attributes cannot be read ({said}")
        assert found["own"]["origin"]["distribution"] == "own-package"
        assert found["smmd"]["error"] is None
