"""Makes a CUDA build of torchvision importable on a CPU-only torch.

The package index has only CUDA builds of torchvision. On a CPU-only torch its binary cannot load,
so two operators have no schema, and the import dies where fake kernels are registered for them;
transformers and vLLM die with it. Their image processors need none of these operators. So, before
torchvision is imported for the first time, the two schemas are defined; they have no kernel.

Where the binary loads, or torch has CUDA, or there is no torchvision, nothing is done. Importing
this module imports neither torch nor torchvision; importing `smmd_bench` installs the watch. A
process that imports `transformers.Trainer` before `smmd_bench` would come too late, so the Makefile
puts a .pth file into the environment that it makes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = "torchvision"
_OPERATORS = ("nms", "qnms")
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_defined: list[Any] = []  # a library's schemas live as long as it does


def install() -> None:
    """Watch for the first import of torchvision in this process; again does no harm.

    Also the `vllm.general_plugins` entry point, for the processes that vLLM starts.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """torchvision as it would be found anyway, with a loader that defines the schemas."""
        if fullname != _PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        """Define the schemas where they are missing, then run torchvision's `__init__`."""
        import torch

        if torch.version.cuda is None and not _binary_loads(Path(self.path).parent):
            _define_schemas()
        super().exec_module(module)


def _binary_loads(folder: Path) -> bool:
    import torch

    try:
        for library in folder.glob("_C.*"):
            torch.ops.load_library(str(library))
            return True
    except OSError:  # it is linked against libraries of CUDA
        pass
    return False


def _define_schemas() -> None:
    import torch

    if not _defined:
        _defined.append(torch.library.Library(_PACKAGE, "FRAGMENT"))
        for operator in _OPERATORS:
            _defined[0].define(f"{operator}{_SIGNATURE}")
