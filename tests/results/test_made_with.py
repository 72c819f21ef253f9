"""What cells were made with, as far as it differs."""

from smmd_bench.results.made_with import differences
from smmd_bench.storage.cell import StoredCell
from smmd_bench.storage.files import write_json


def test_one_process_and_ddp_are_what_a_receipt_leaves_out(tmp_path):
    cells = []
    for number, more in enumerate(
        [{}, {"processes": "2"}, {"processes": "2", "strategy": "fsdp2"}]
    ):
        folder = tmp_path / str(number)
        made_with = {"torch": "2.13.0", **more}
        write_json(folder / "train.json", {"address": "a", "epochs": [], "made_with": made_with})
        cells.append(StoredCell(folder, {"train": "a"}, is_base=False))
    assert differences(cells) == {
        "processes in training": ["1", "2"],
        "strategy in training": ["ddp", "fsdp2"],
    }
