"""What people who contribute are told, and what runs on their commits."""

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from scripts.check_prose import RULES, prose

from .documents import ROOT

SAID_BADLY = (
    "An empty list is wished for.",
    "It says how to mend the rest.",
    "The engine goes on with the old weights.",
    "They are dropped without a word.",
    "A figure is no table.",
    "It grows, for its units are numbers.",
    "Equal, but for rounding.",
    "It is not there any more.",
    "Everything is drawn anew.",
    "How many there are is said before.",
    "A mistake of the user's ends it.",
    "The task wants a sample.",
    "It is held against the example.",
    "The file has not one row.",
    "Here it is. What is no number is null.",
    "The data are not to be had.",
    "The the table.",
)


def test_the_hooks_of_a_commit_are_what_make_lint_runs():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    lines = recipe[1].replace("$(BIN)", ".venv/bin").splitlines()
    linted = {re.sub(r" (\.|\$\(\w+\))$", "", line.strip()) for line in lines}
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert {hook["entry"] for hook in hooks} == linted
    assert {hook["language"] for hook in hooks} == {"system"}


def test_the_workflow_runs_the_pythons_that_the_documentation_names():
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    pythons = workflow["jobs"]["checks"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={pythons[0]}"
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert all(f"\n| {python} | " in page for python in pythons)


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


@pytest.mark.parametrize("sentence", SAID_BADLY)
def test_a_turn_of_phrase_is_found_on_a_page_and_in_a_docstring(sentence, tmp_path):
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"# A page\n\n{sentence.replace(' ', chr(10), 1)}\n")
    module.write_text(f'"""{sentence}"""\n')
    for file in (page, module):
        texts = prose(file)
        assert any(re.search(rule, text, re.IGNORECASE) for rule in RULES for text in texts)


def test_code_is_not_read_as_prose(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("It prints `it is no table`:\n\n```\n# wants a GPU\n```\n")
    assert not [rule for rule in RULES for text in prose(page) if re.search(rule, text)]


def test_the_pages_are_plain_english():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "check_prose.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_tests_that_hold_a_change_exist():
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|scripts|smmd_bench)/[\w/.]+)`", page)
    assert len(named) > 25
    assert not [name for name in named if not (ROOT / name).exists()]
