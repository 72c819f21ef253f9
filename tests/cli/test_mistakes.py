"""A user's mistake is one sentence that names it, with status 2, and nothing is written."""

import pytest

from tests.conftest import DATA
from tests.plugin_system.loss_file import LOSS

from .conftest import run_here

JOB = (
    "train-eval --losses ce --dry-run "
    "--train-examples 8 --validation-examples 2 --test-examples 2"
)
TEXT = f"{JOB} --task arithmetic"
FILES = {
    "FILE": b"",
    "LATIN": b"tasks: [arithmetic]\nlosses: [c\xff]\n",
    "UNKNOWN": b"tasks: [arithmatic]\nlosses: [ce]\n",
    "KEY": b"tasks: [arithmetic]\nlosses: [ce]\nseed: 1\n",
    "idle.py": LOSS.encode(),
    "twin.py": LOSS.encode(),
}


@pytest.mark.parametrize(
    ("command", "word"),
    [
        # names
        ("train-evil", "Did you mean 'train-eval'"),
        ("train-eval --losses ce", "--task"),
        ("train-eval --task arithmatic --losses ce", "did you mean arithmetic"),
        ("train-eval --task arithmetic --losses ce,SMMD", "'SMMD': did you mean smmd?"),
        ("train-eval --task arithmetic --losses smmd[sgima=1]", "did you mean sigma"),
        ("train-eval --task arithmetic[levle=x] --losses ce", "did you mean level?"),
        (f"{TEXT} --model builtin/t", "did you mean builtin/tiny"),
        (f"{TEXT} --executor loacl", "did you mean local"),
        (f"{TEXT} --engine vlm", "did you mean vllm"),
        (f"{TEXT} --decoders medain", "'mean' or 'median', not 'medain'"),
        (
            f"{TEXT} --set lora_targets=q_proj,vproj --method lora",
            "did you mean v_proj",
        ),
        (f"{TEXT} --set epochz=1", "did you mean epochs"),
        ("run UNKNOWN", "did you mean arithmetic"),
        ("run KEY", "did you mean seeds"),
        ("overhead --losses ntll", "did you mean ntl"),
        ("report RUN --only tabel2", "did you mean table2"),
        ("report RUN --format pgn", "did you mean png?"),
        pytest.param(
            "regress RUN --suite mmluu", "did you mean mmlu", marks=pytest.mark.long
        ),
        ("score --task arithmatic --predictions .", "did you mean arithmetic"),
        ("show RUN --loss smd", "did you mean smmd?"),
        ("show RUN --uid test-00000", "did you mean test-000"),
        ("show RUN --cell zz", "has the address 'zz'"),
        ("show RUN --wrong --flips ntl", "--wrong, --flips and --uid"),
        ("show RUN --flips nlt", "did you mean ntl?"),
        ("show RUN --flips ntl --loss smmd", "ignores --loss"),
        ("show RUN --flips base", "none has an opponent"),
        ("validate arithmatic", "did you mean arithmetic"),
        ("ls loses", "'loses' is not one of"),
        ("clean --yes", "name parts with --what"),
        ("clean --what weigths", "did you mean weights?"),
        ("clean nowhere", "is not a run folder"),
        # values
        (f"{TEXT} --seeds a", "seeds[0] must be an integer, not 'a'"),
        (f"{TEXT} --set x", "KEY=VALUE"),
        (f"{TEXT} --set epochs=1 --epochs 2", "epochs is given as 2 and as 1"),
        (f"{TEXT} --tune=", "name something"),
        ("train-eval --task= --losses ce", "give at least one TASK"),
        ("report RUN --only=", "give at least one NAME"),
        ("sample arithmetic --seed -1", "--seed"),
        ("power RUN --difference -2", "--difference -2"),
        ("compare RUN RUN --losses ce,smmd", "two runs, or one"),
        ("compare RUN --losses ce", "finds ce alone"),
        (f"{TEXT} --print-yaml", "ignores --dry-run"),
        (
            "train-eval --task arithmetic --losses smmd[sigma=1,2,3]",
            "such as sigma=1+2+3",
        ),
        (f"{TEXT} --set max_length=3", "raise max_length to"),
        (f"{JOB} --task gsm8k --decoders mean", "mean"),
        (f"{TEXT} --extend", "write --out runs/NAME --extend"),
        # files and folders
        (f"{TEXT} --out FILE/x/y", "FILE/x/y cannot be made"),
        (f"{TEXT} --out FULL", "holds no run"),
        ("export RUN --out FILE/x", "A file FILE/x/"),
        ("run none.yaml", "none.yaml cannot be used"),
        ("run FILE", "FILE must be a mapping"),
        ("run LATIN", "not valid YAML in UTF-8"),
        ("report none", "is not a run folder"),
        ("validate ./none.py", "none.py does not exist"),
        ("sample arithmetic --data-dir none", "Directory 'none' does not exist"),
        ("prepare", "Nothing to prepare"),
        ("prepare --model someone/whole", "give a local folder"),
        # what nothing reads
        (f"{JOB} --task gsm8k --data-dir DATA", "write gsm8k[source=corpus] to"),
        (
            f"{JOB} --task gsm8k --task samsum[source=corpus] --data-dir DATA",
            "write gsm8k",
        ),
        ("sample svamp --split test --seed 7 --data-dir DATA", "--seed 7"),
        (f"{TEXT} --set lora_rank=8", "lora_rank"),
        (f"{TEXT} --tune lora_rank=4,8", "lora_rank"),
        ("validate ce --run RUN", "--run"),
        ("ls --plugin idle.py --plugin twin.py", "twin.py both define the loss mine"),
    ],
)
def test_a_mistake_is_one_sentence_with_status_2(command, word, run_folder, tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "FULL/notes").mkdir(parents=True)
    files = sorted(tmp_path.rglob("*"))
    line = command.replace(" DATA", f" {DATA}").replace(" RUN", f" {run_folder}")
    out = run_here(line, cwd=tmp_path, HF_HUB_OFFLINE="1")
    assert out.returncode == 2, out.stdout + out.stderr

    output = " ".join(out.stderr.split())
    assert word in output
    assert output.count("Error: ") == 1
    assert "Traceback" not in output
    assert [
        path for path in sorted(tmp_path.rglob("*")) if path.name != ".lock"
    ] == files
