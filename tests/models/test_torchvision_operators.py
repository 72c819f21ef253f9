"""A CUDA build of torchvision on a CPU-only torch; a matching one, or none, is left alone."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(code: str, folder: Path | None = None) -> str:
    """What a fresh Python prints in which warnings are errors; `folder` comes first in its path."""
    start = f"import sys; sys.path[:0] = {[] if folder is None else [str(folder)]}\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_transformers_imports_without_smmd_bench_before_it():
    pytest.importorskip("torchvision")
    code = """
    from transformers import MllamaProcessor, PixtralProcessor, Qwen2_5_VLProcessor, Trainer
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor
    import torch
    from torchvision.transforms.v2 import functional
    image = torch.zeros(3, 8, 8, dtype=torch.uint8)
    print(tuple(functional.resize(image, [4, 4]).shape))
    """
    assert run(code) == "(3, 4, 4)"


@pytest.mark.parametrize(
    ("cuda", "binary", "declared"),
    [
        (None, "raise OSError", True),
        ("'13.0'", "raise OSError", False),
        (None, "return", False),
    ],
    ids=["binary cannot load", "torch has CUDA", "binary loads"],
)
def test_operators_are_declared_only_where_they_are_missing(tmp_path, cuda, binary, declared):
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").touch()
    (tmp_path / "torchvision" / "_C.so").touch()
    code = f"""
    import os
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch
    def load(path):
        {binary}
    torch.version.cuda, torch.ops.load_library = {cuda}, load
    from smmd_bench.models.torchvision_operators import declare_operators
    declare_operators()
    declare_operators()
    print(hasattr(torch.ops.torchvision, "nms"))
    """
    assert run(code, tmp_path) == str(declared)
