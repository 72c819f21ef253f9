"""A CUDA build of torchvision on a CPU-only torch; a matching one, or none, is left alone."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from unittest.mock import Mock

import pytest
import torch

from smmd_bench.models import torchvision_operators as module

CODE = """
from transformers import MllamaProcessor, PixtralProcessor, Qwen2_5_VLProcessor, Trainer
from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor
import torch
from torchvision.transforms.v2 import functional
image = torch.zeros(3, 8, 8, dtype=torch.uint8)
assert tuple(functional.resize(image, [4, 4]).shape) == (3, 4, 4)
"""


@pytest.mark.long
def test_transformers_imports_without_smmd_bench_before_it():
    pytest.importorskip("torchvision")
    subprocess.run([sys.executable, "-W", "error", "-c", CODE], check=True, timeout=300)


@pytest.mark.parametrize(
    ("cuda", "error", "declared"),
    [
        pytest.param(None, OSError, 1, id="binary cannot load"),
        pytest.param("13.0", OSError, 0, id="torch has CUDA"),
        pytest.param(None, None, 0, id="binary loads"),
    ],
)
def test_operators_are_declared_only_where_they_are_missing(
    monkeypatch, tmp_path, cuda, error, declared
):
    (tmp_path / "_C.so").touch()
    spec = ModuleSpec("torchvision", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(module, "find_spec", lambda _: spec)
    monkeypatch.setattr(module, "_declared", [])
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.ops, "load_library", Mock(side_effect=error))
    monkeypatch.setattr(torch.library, "Library", library := Mock())
    module.declare_operators()
    module.declare_operators()
    assert library.call_count == declared
