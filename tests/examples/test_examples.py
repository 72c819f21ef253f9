"""The files of examples/ do what they say."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import smmd_bench as sb
from smmd_bench.conformance.suite import violations
from smmd_bench.plugin_system import registry

pytestmark = pytest.mark.engine

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("file", "spec"), [("own_task.py", "doubling"), ("own_loss.py", "huber[delta=2]")]
)
def test_a_plugin_of_ones_own_keeps_its_contract(file, spec):
    registry.load_plugin_file(EXAMPLES / file)
    assert violations(spec) == []


def test_the_notebook_runs_and_its_report_has_the_numbers_of_the_run(
    run_folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("SMMD_BENCH_RUN", str(run_folder))
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    notebook = nbformat.read(EXAMPLES / "own_figure.ipynb", as_version=4)
    parts = [
        cell.source
        for cell in notebook.cells
        if cell.source.startswith("# by_digits.py")
    ]
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=resources
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "means over the seeds (at most 2)" in outputs[-1]["text"]

    file = tmp_path / "by_digits.py"
    file.write_text("\n\n\n".join(parts) + "\n", encoding="utf-8")
    registry.load_plugin_file(file)
    run = sb.read_run(run_folder)

    for row in (
        registry.load("reports", "accuracy_by_digits")
        .build(run)
        .data.to_dict("records")
    ):
        completions = run.completions[run.completions["loss"] == row["loss"]]
        completions = completions[
            [
                sum(map(str.isdigit, text)) == row["digits"]
                for text in completions["target"]
            ]
        ]
        assert row["accuracy"] == pytest.approx(100 * completions["exact"].mean())
