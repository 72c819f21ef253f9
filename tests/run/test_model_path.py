"""A model that was given by a path, from another working directory."""

from dataclasses import replace

import pytest

from smmd_bench.errors import UserError
from smmd_bench.models.card_content import builtin_folder
from smmd_bench.models.cards import model_card
from smmd_bench.results.frames import read_run
from smmd_bench.results.summary import card_of_run
from smmd_bench.run.cell_json import cell_from_json
from smmd_bench.run.run_directory import RunDirectory

from .finished_cells import PLAIN, claim


def test_a_model_given_by_a_path_is_found_from_anywhere_and_named_where_it_is_gone(
    tmp_path, monkeypatch
):
    for folder in ("here", "else"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    model = tmp_path / "here" / "m"
    model.symlink_to(builtin_folder("builtin/tiny"))
    run = RunDirectory(tmp_path / "run")
    mine = replace(PLAIN, models=("./m",))
    claim(run, mine)
    addresses = [cell.parts for cell in mine.cells]
    assert addresses == [cell.parts for cell in PLAIN.cells]  # by content, not by name
    monkeypatch.chdir(tmp_path / "else")
    model_card.cache_clear()
    frames = read_run(run.path)
    assert card_of_run("./m", frames).folder == model
    assert cell_from_json(frames.rows[0]).card.name == "./m"
    claim(run, replace(PLAIN, models=("../here/m",)))  # the same cells, spelled otherwise
    assert len(read_run(run.path).cells) == len(addresses)
    model.unlink()
    with pytest.raises(UserError, match=r"here/m .* is not there any more: move it back"):
        card_of_run("../here/m", read_run(run.path))
