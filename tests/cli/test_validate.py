import json
from pathlib import Path

import pytest

from .conftest import call, run_here


def written(kind: str, name: str, folder: Path, old: str, new: str) -> None:
    """A new plugin with a change."""
    assert run_here("new", kind, name, "--folder", folder).returncode == 0
    file = folder / f"{name}.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_ce_passes_every_check():
    lines = run_here("validate", "ce").stdout.splitlines()
    assert lines[0] == "loss ce"
    assert all(line.startswith(("  ✓ ", "    ")) for line in lines[1:-1])
    assert lines[-1].endswith(" 0 failed, 0 not possible here.")
    assert all(line == line.rstrip() and len(line) <= 100 for line in lines)


def test_what_hangs_on_the_hash_seed_fails_with_status_1(tmp_path, monkeypatch):
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


def test_engines_and_executors_say_what_was_not_tried():
    out = run_here("validate", "executors", "transformers")
    assert out.returncode == 0
    said = " ".join(out.stdout.split())
    assert "executor local" in said
    assert "engine transformers" in said
    assert "– behaviour: not possible here: that needs a checkpoint" in said


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("smdd", "did you mean smmd?"),
        ("./none.py", "does not exist"),
        ("smmd[sigma=x]", "sigma"),
    ],
)
def test_an_unknown_name_gives_the_nearest_and_a_missing_file_its_path(word, said):
    out = run_here("validate", word)
    assert (out.returncode, said in out.stderr) == (2, True)
