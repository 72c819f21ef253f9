"""`smmd-bench show` on the synthetic run, and on runs with what it lacks."""

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import smmd_bench as sb
from smmd_bench.cli import cli
from smmd_bench.cli.show_views.example import Answered, Distribution
from smmd_bench.cli.show_views.plot import BLOCKS, bar, draw_bands
from smmd_bench.conformance.stamped_cell import write_measured
from smmd_bench.errors import UserError
from smmd_bench.storage.files import read_json, write_json
from tests.runs import Planted, rewrite, write_failure, write_run

from .conftest import cell_folder

PLANTED = Planted(
    ["1", "2", "3"],
    {
        "ce": {0: ["1", "2", "3"], 1: ["1", "2", "9"]},
        "ntl": {0: ["1", "7", ""], 1: ["1", "2", "9"]},
        "smmd": {0: ["1", "2", "4"], 1: ["1", "2", "9"]},
    },
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "planted"
    write_run(folder, losses=("ce", "ntl", "smmd"), tasks=("gsm8k",), planted=PLANTED, resamples=20)
    return folder


def show(*arguments: object, expect_error: bool = False) -> str:
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(cli, ["show", *words], standalone_mode=False)
    if expect_error:
        assert isinstance(result.exception, UserError)
        return str(result.exception)
    if result.exception is not None:
        raise result.exception
    return result.output


def as_json(*arguments: object) -> dict:
    content = json.loads(show(*arguments, "--json"))
    assert isinstance(content, dict)
    return content


def address(run: Path, loss: str, seed: int = 0) -> str:
    return cell_folder(run, loss, seed).name


def test_the_first_example_on_which_the_losses_disagree_is_shown(planted):
    found = as_json(planted)
    assert found["uid"] == "p1"
    assert [(a["loss"], a["right"], a["parsed"]) for a in found["answers"]] == [
        ("ce", True, 2.0), ("ntl", False, 7.0), ("smmd", True, 2.0),
    ]  # fmt: skip
    assert "one of 2 of 3" in found["why"]
    found = as_json(planted, "--loss", "smmd")
    assert found["named"] == address(planted, "smmd")
    assert found["uid"] == "p1"  # where NTL is wrong and it is right
    found = as_json(address(planted, "smmd", 1), "--run", planted)
    assert (found["seed"], found["uid"]) == (1, "p0")
    assert "never differ" in found["why"]


def test_an_answer_without_a_number_is_wrong_and_has_no_value(planted):
    ntl = as_json(planted, "--uid", "p2")["answers"][1]
    assert (ntl["completion"], ntl["right"], ntl["parsed"]) == ("", False, None)
    assert "ntl   wrong  none    " in show(planted, "--uid", "p2")


@pytest.fixture
def run(run_folder, tmp_path):
    """A copy of the synthetic run, to be changed."""
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


def test_a_cell_is_found_by_address_by_its_beginning_and_by_its_folder(run_folder, monkeypatch):
    whole = address(run_folder, "ntl", 1)
    monkeypatch.chdir(run_folder.parent)
    found = [
        as_json(whole, "--run", run_folder),
        as_json(whole[:10], "--run", run_folder),
        as_json(run_folder / "cells" / whole),
    ]
    assert [(f["named"], f["seed"]) for f in found] == [(whole, 1)] * 3


def test_the_beginning_of_two_addresses_is_refused_with_both(run):
    for loss, name in (("ce", "abc1"), ("ntl", "abc2")):
        (run / "cells" / (old := address(run, loss))).rename(run / "cells" / name)
        manifest = read_json(run / "manifest.json")
        cells = [name if known == old else known for known in manifest["cells"]]
        write_json(run / "manifest.json", {**manifest, "cells": cells})
    text = show("abc", "--run", run, expect_error=True)
    assert "'abc' begins 2 addresses" in text
    assert "abc1 (arithmetic[operations=1..2] ce seed 0)" in text
    assert as_json("abc2", "--run", run)["named"] == "abc2"


def test_without_a_run_it_is_the_newest_with_a_measured_cell(run_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = Path("runs")
    write_json(runs / "overhead" / "manifest.json", {"name": "overhead", "overhead": {}})
    shutil.copytree(run_folder, runs / "unfinished")
    for file in runs.glob("unfinished/cells/*/metrics.json"):
        file.unlink()
    assert "has a measured cell yet" in show(expect_error=True)
    for name, stamp in {"new": 1_000_000_000, "old": 999_999_999}.items():
        shutil.copytree(run_folder, runs / name)
        os.utime(runs / name / "manifest.json", (stamp, stamp))
    assert as_json()["run"] == "runs/new"
    text = show(runs / "overhead", expect_error=True)
    assert text.startswith("runs/overhead has no cells: give a run of")
    text = show(runs / "unfinished", expect_error=True)
    assert "the command that made the run continues it" in text


def test_every_loss_of_the_seed_is_there_with_the_base(run_folder):
    found = as_json(run_folder, "--seed", 1)
    assert [a["loss"] for a in found["answers"]] == ["base", "ce", "ntl", "smmd"]
    run = sb.read_run(run_folder)
    for answer in found["answers"]:
        rows = run.completions[run.completions["address"] == answer["address"]]
        (row,) = rows[rows["uid"] == found["uid"]].to_dict("records")
        assert answer["completion"] == row["completion"]
        assert answer["right"] == row["exact"]


def test_digit_distributions_are_those_of_the_probes(run_folder):
    found = as_json(run_folder, "--uid", "test-000003")
    probes = sb.read_run(run_folder).probes
    for answer in found["answers"]:
        mine = probes[(probes["address"] == answer["address"]) & (probes["uid"] == found["uid"])]
        assert len(answer["distributions"]) == len(mine) > 0
        for shown, (_, row) in zip(answer["distributions"], mine.iterrows(), strict=True):
            assert shown["p"] == pytest.approx([row[f"p{digit}"] for digit in range(10)])
            assert shown["target_value"] == row["target_value"]


def test_it_fits_in_80_columns_without_colours(run_folder):
    text = show(run_folder, "--loss", "smmd")
    lines = [line for line in text.splitlines() if str(run_folder) not in line]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in text
    assert "* smmd" in text


def test_control_characters_of_a_model_do_not_reach_the_terminal(run):
    file = cell_folder(run, "ce") / "completions.parquet"
    rewrite(file, pd.read_parquet(file).assign(completion="a\x1b[2J[bold]b"))
    assert "a\\x1b[2J[bold]b" in show(run)


def test_a_picture_is_named(tmp_path):
    write_run(tmp_path / "run", tasks=("clock_time",), seeds=(0,), n=20, resamples=20)
    found = as_json(tmp_path / "run")
    assert Path(found["image"]).is_file()
    assert f"Picture {found['image']}" in show(tmp_path / "run")


def test_where_answers_are_no_numbers_nothing_is_right_or_wrong(tmp_path):
    write_run(tmp_path / "run", tasks=("samsum",), seeds=(0,), n=20, resamples=20)
    found = as_json(tmp_path / "run")
    assert {answer["right"] for answer in found["answers"]} == {None}
    assert "the losses differ" in found["why"]


def test_predictions_without_probes_are_shown(planted, tmp_path):
    run = Path(shutil.copytree(planted, tmp_path / "run"))
    for file in run.glob("cells/*/cell.json"):
        content = read_json(file)
        del content["addresses"]["select"]
        write_json(file, content)
        cell = sb.read_run(run).current(file.parent.name)
        names = ("completions", "probes", "scores")
        frames = [pd.read_parquet(file.with_name(f"{name}.parquet")) for name in names]
        metrics = {
            k: v for k, v in read_json(file.with_name("metrics.json")).items() if k != "address"
        }
        write_measured(cell, *frames, metrics)
        file.with_name("probes.parquet").unlink()
    assert "no digit probes" in show(run)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no run in"),
        ([], "--run"),
        (["RUN", "--loss", "smd"], "did you mean smmd?"),
        (["RUN", "--seed", "7"], "known: 0, 1"),
        (["RUN", "--uid", "test-00000"], "did you mean test-000"),
        (["zz", "--run", "RUN"], "has the address 'zz': give one of"),
        (["./nowhere"], "is not a run folder"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_remedy(run_folder, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    words = [str(run_folder) if word == "RUN" else word for word in words]
    text = show(*words, expect_error=True)
    assert said in text
    assert "\n" not in text


def test_a_cell_that_failed_or_that_no_options_fit_is_said(run):
    failed = address(run, "smmd")
    (run / "cells" / failed / "metrics.json").unlink()
    write_failure(run / "cells" / failed, {"stage": "train", "error": "NaN"})
    assert "smmd seed 0, failed" in show(failed, "--run", run, expect_error=True)
    assert [a["loss"] for a in as_json(run)["answers"]] == ["base", "ce", "ntl"]
    shutil.rmtree(cell_folder(run, "smmd", 1))
    text = show(run, "--loss", "smmd", "--seed", 1, expect_error=True)
    assert "fits all options" in text


def test_the_height_of_a_block_is_the_probability():
    assert "".join(map(bar, (0.0, 0.01, 0.03, 0.5, 1))) == "  ▁▄█"


def test_the_answer_is_told_apart_from_the_rationale_before_it(planted, tmp_path):
    write_run(tmp_path, tasks=("gsm8k",), losses=("ce",), seeds=(0,), n=20, resamples=20)
    found = as_json(tmp_path)
    places = [d["answer_digit"] for d in found["answers"][0]["distributions"]]
    answer = [c for c in found["target"].rpartition("####")[2] if c.isdigit()]
    outside = sum(c.isdigit() for c in found["target"]) - len(answer)
    assert places == [-1] * outside + [*range(len(answer))]
    text = show(tmp_path)
    assert f"token {outside}: 7" in text
    assert f"answer 1: {answer[0]}" in text
    assert f"token {outside + 1}" not in text
    assert "answer 1: the first digit of the final answer" in text
    assert "outside the answer" not in show(planted)  # whose targets have no rationale


def answered(values: list[float]) -> Answered:
    sure = [tuple(float(d == int(str(v)[0])) for d in range(10)) for v in values]
    distributions = [
        Distribution(at, value, 1.0, p)
        for at, (value, p) in enumerate(zip(values, sure, strict=True))
    ]
    return Answered("0", "ce", "", "stop", None, None, None, None, tuple(distributions))


def test_the_mark_stands_above_the_digit_of_the_true_token():
    (band,) = draw_bands([answered([7, 120])], 60)
    titles, marks, digits = band.heads
    assert titles.split("token ")[1:] == ["1: 7      ", "2: 120"]
    for start, digit in ((0, 7), (16, 1)):
        assert marks[start + digit] == "▼"
        assert digits[start + digit] == str(digit)
        assert band.rows[0][1][start + digit] == BLOCKS[-1]


def test_panels_that_do_not_fit_stand_below():
    found = draw_bands([answered([1, 2, 3, 4, 5])], 40)
    assert [len(band.heads[0].split("token")) - 1 for band in found] == [2, 2, 1]
    assert all(len(line) <= 40 for band in found for line in band.heads)


def test_a_damaged_file_is_an_error_that_names_it(planted, tmp_path):
    run = Path(shutil.copytree(planted, tmp_path / "run"))
    file = cell_folder(run, "smmd") / "probes.parquet"
    content = file.read_bytes()
    file.write_bytes(content[:8] + bytes(60) + content[68:])
    assert f"{file} is damaged" in show(run, "--loss", "smmd", expect_error=True)
    assert "smmd" not in [answer["loss"] for answer in as_json(run)["answers"]]  # it is set aside
