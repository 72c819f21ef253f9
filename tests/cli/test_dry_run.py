"""A dry run refuses what the command refuses before it trains, and writes nothing."""

import json

import pytest
from click.testing import CliRunner

from smmd_bench.cli.train_eval import command
from smmd_bench.errors import UserError
from tests.conftest import DATA

JOB = (
    "--task arithmetic[level=easy] --losses ce --engine transformers --train-examples 8 "
    "--validation-examples 2 --test-examples 2 --out out"
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (JOB.replace("out out", "out theirs"), "belongs to another experiment (theirs)"),
        (JOB.replace("out out", "out full"), "is not empty and holds no run (notes.txt)"),
        (f"{JOB} --set max_length=3", "raise max_length to"),
        (f"{JOB} --set chat_template=true", "chat_template"),
        (f"{JOB} --method lora --set lora_targets=none_such", "no layer of"),
        (
            JOB.replace("arithmetic[level=easy]", "gsm8k[source=corpus] --decoders mean"),
            "mean needs",
        ),
        (JOB.replace("arithmetic[level=easy]", "svamp[source=corpus]"), "svamp"),
        (
            JOB.replace("arithmetic[level=easy]", "samsum[source=corpus] --data-dir full"),
            "no samsum",
        ),
    ],
)
def test_a_dry_run_refuses_what_the_command_refuses(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))
    for folder in ("theirs", "full"):
        (tmp_path / folder).mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    (tmp_path / "theirs" / "manifest.json").write_text(json.dumps({"name": "theirs", "cells": []}))
    errors = []
    for extra in ([], ["--dry-run"]):
        result = CliRunner().invoke(command, [*words.split(), *extra])
        assert isinstance(result.exception, UserError), result.output
        errors.append(str(result.exception))
    assert errors[0] == errors[1]
    assert said in errors[0]
    assert not (tmp_path / "out").exists() or not [*(tmp_path / "out").glob("[!.]*")]
