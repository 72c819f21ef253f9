"""Make `builtin/tiny` ready to go on with tokens of up to three digits (N = 1000).

    python scripts/build_tiny_triple.py FOLDER
    python scripts/pretrain_tiny.py RUNDIR --start FOLDER --minutes 60 --shares SHARES

The numbers from 10 to 999 become tokens after the others. As in Llama 3, digits are grouped by
three from the left. The embedding of a number starts as the mean of its digits', with noise.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

TINY = Path(__file__).parent.parent / "smmd_bench" / "models" / "builtin" / "tiny"
NUMBERS = [str(number) for number in range(10, 1000)]
EMBEDDING = "model.embed_tokens.weight"
MULTIPLE = 64  # of the rows of the embedding


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("generation_config.json", "tokenizer_config.json"):
        shutil.copy(TINY / name, folder / name)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = (
        "PreTrainedTokenizerFast"  # Qwen2's own splits numbers anew
    )
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    tokenizer = json.loads((TINY / "tokenizer.json").read_text())
    pattern = tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]
    pattern["Regex"] = pattern["Regex"].replace(r"|\p{N}|", r"|\p{N}{1,3}|")
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary.update(
        {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    )
    first = 1 + max(vocabulary.values())
    vocabulary.update({number: first + i for i, number in enumerate(NUMBERS)})
    tokenizer["model"]["merges"] += [[number[:-1], number[-1]] for number in NUMBERS]
    (folder / "tokenizer.json").write_text(
        json.dumps(tokenizer, ensure_ascii=False) + "\n"
    )
    weights = load_file(TINY / "model.safetensors")
    rows = -(-(first + len(NUMBERS)) // MULTIPLE) * MULTIPLE
    weights[EMBEDDING] = embedding(weights[EMBEDDING], vocabulary, first, rows)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((TINY / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "vocab_size": rows}, indent=1) + "\n"
    )
    print(f"{first + len(NUMBERS)} tokens in {folder}")


def embedding(
    old: torch.Tensor, ids: dict[str, int], first: int, rows: int
) -> torch.Tensor:
    """[rows, H] float32: the old rows, the numbers, and rows that no token has."""
    digits = old[[ids[str(digit)] for digit in range(10)]]  # [10, H]
    noise = torch.randn(
        rows - first, old.shape[1], generator=torch.Generator().manual_seed(0)
    )
    new = noise * digits.std() / 2
    new[: len(NUMBERS)] += torch.stack(
        [digits[[*map(int, number)]].mean(0) for number in NUMBERS]
    )
    return torch.cat([old[:first], new]).contiguous()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
