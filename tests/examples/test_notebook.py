"""The notebook runs on a run folder from its first cell to its last, and its plugin is one."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from smmd_bench.plugin_system.registry import load, load_plugin_file
from smmd_bench.results.frames import read_run

NOTEBOOK = Path(__file__).parents[2] / "examples" / "own_figure.ipynb"
MARK = "# by_digits.py"


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def plugin_file(notebook, tmp_path_factory):
    """What a reader makes of it: the marked cells, in a file of that name."""
    parts = [cell.source for cell in notebook.cells if cell.source.startswith(MARK)]
    assert len(parts) == 3
    file = tmp_path_factory.mktemp("plugin") / "by_digits.py"
    file.write_text("\n\n\n".join(parts) + "\n", encoding="utf-8")
    load_plugin_file(file)
    return file


def test_it_runs_from_the_first_cell_to_the_last(run_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_RUN", str(run_folder))
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(fresh, timeout=120, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in fresh.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "means over the seeds (at most 2)" in outputs[-1]["text"]
    assert not [output for output in outputs if output.output_type == "error"]


def test_its_numbers_are_those_of_the_run(plugin_file, run_folder):
    run = read_run(run_folder)
    data = load("reports", "accuracy_by_digits").build(run).data
    assert data["seeds"].max() == 2
    for row in data.to_dict("records"):
        mine = run.completions[run.completions["loss"] == row["loss"]]
        mine = mine[[sum(map(str.isdigit, text)) == row["digits"] for text in mine["target"]]]
        assert row["n"] == mine["uid"].nunique()
        assert row["accuracy"] == pytest.approx(100 * mine["exact"].mean())
        assert row["low"] <= row["accuracy"] <= row["high"]
