import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from smmd_bench.cli import cli
from smmd_bench.errors import UserError

COMMAND = str(Path(sys.executable).parent / "smmd-bench")


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, cwd=cwd)


def written(kind: str, name: str, folder: Path, old: str, new: str) -> None:
    """A new plugin with a change."""
    result = CliRunner().invoke(cli, ["new", kind, name, "--folder", str(folder)])
    assert result.exit_code == 0
    file = folder / f"{name}.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_ce_passes_every_check() -> None:
    result = CliRunner().invoke(cli, ["validate", "ce"])
    lines = result.output.splitlines()
    assert lines[0] == "loss ce"
    assert all(line.startswith(("  ✓ ", "    ")) for line in lines[1:-1])
    assert lines[-1].endswith(" 0 failed, 0 not possible here.")
    assert all(line == line.rstrip() and len(line) <= 100 for line in lines)


def test_what_hangs_on_the_hash_seed_fails_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seeded = 'random.Random(f"{self.name} {split} {seed}")'
    written("task", "hashed", tmp_path, seeded, "random.Random(hash((split, seed)))")
    written("loss", "broken", tmp_path, "@dataclass(frozen=True)\n", "")
    out = call("validate", "hashed.py", "broken.py", "--json", cwd=tmp_path)
    assert out.returncode == 1
    found = json.loads(out.stdout)
    task, loss = found["plugins"]
    assert (task["group"], task["plugin"]) == ("tasks", "hashed")
    failed = [c for c in task["checks"] if c["state"] == "failed"]
    assert [c["check"] for c in failed] == ["reproducible"]
    assert "different in another process" in failed[0]["detail"]
    assert [c["check"] for c in loss["checks"]] == ["plugin"]
    assert "it is not a dataclass" in loss["checks"][0]["detail"]
    assert found["failed"] == 2


def test_engines_and_executors_say_what_was_not_tried() -> None:
    result = CliRunner().invoke(cli, ["validate", "executors", "transformers"])
    assert result.exit_code == 0
    assert "executor local" in result.output
    assert "engine transformers" in result.output
    said = " ".join(result.output.split())
    assert "– behaviour: not possible here: that needs a checkpoint" in said


def test_an_unknown_name_gives_the_nearest_and_a_missing_file_its_path() -> None:
    for words, said in (
        (["smdd"], "did you mean smmd?"),
        (["./none.py"], "does not exist"),
        (["smmd[sigma=x]"], "sigma"),
    ):
        result = CliRunner().invoke(cli, ["validate", *words])
        assert isinstance(result.exception, UserError)
        assert said in str(result.exception)
