import os
from pathlib import Path

from smmd_bench.training import tracking


def test_each_cell_has_a_name_and_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", {"WANDB_DIR": "mine"})
    folders = set()
    for cell in ("0a", "0b"):
        settings = tracking.tracking(
            "tensorboard", "m smmd[sigma=1] seed 0", tmp_path / "run" / "train" / cell
        )
        assert settings["report_to"] == ["tensorboard"]
        assert settings["run_name"] == "m smmd[sigma=1] seed 0"
        folders.add(os.environ["TENSORBOARD_LOGGING_DIR"])
    assert len(folders) == 2
    assert all(Path(f).parent == tmp_path / "run" / "tracking" / "tensorboard" for f in folders)
    assert os.environ["WANDB_DIR"] == "mine"
    assert os.environ["WANDB_PROJECT"] == "run"
