"""Declares two operators of torchvision where its binary cannot load.

The package index has only CUDA builds of torchvision 0.28. Beside a CPU torch their binary cannot
load, `torchvision::nms` has no schema, and `import torchvision` fails. Where torchvision is
installed, transformers' Trainer, models and processors, PEFT and vLLM all import it, also for text,
and fail with it. Nothing here calls the two operators: it is enough to declare them, without a
kernel, before torchvision is imported.

torch itself calls `declare_operators` at the end of `import torch`, through the entry point group
`torch.backends`, in every process of the environment. It changes nothing where torch has CUDA,
where the binary loads, and where there is no torchvision.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[Any] = []  # a library's schemas live as long as it does


def declare_operators() -> None:
    """Declare `nms` and `qnms` if torchvision needs it; a second call does nothing."""
    import torch

    spec = find_spec("torchvision")
    if (
        torch.version.cuda is not None
        or spec is None
        or spec.origin is None
        or _declared
    ):
        return
    try:
        for binary in Path(spec.origin).parent.glob("_C.*"):
            torch.ops.load_library(str(binary))
            return
    except OSError:  # it is linked against the libraries of CUDA
        pass

    _declared.append(torch.library.Library("torchvision", "FRAGMENT"))
    for operator in ("nms", "qnms"):
        _declared[0].define(f"{operator}{_SIGNATURE}")
