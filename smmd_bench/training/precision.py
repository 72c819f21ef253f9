"""A model that computes in another dtype for a while, one module's weights at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def computing_in(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Inside, every module with weights of its own computes in `dtype`.

    The weights of a module are converted when its forward begins and put back when it ends: that
    takes the memory of one more module, not of one more model. Integer weights and buffers stay as
    they are. For inference only.
    """
    kept: dict[nn.Module, list[dict[str, Any]]] = {}

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kept.setdefault(module, []).append(dict(module._parameters))
        for name, weight in module._parameters.items():
            if weight is not None and weight.is_floating_point():
                module._parameters[name] = weight.detach().to(dtype)
        return (
            tuple(_cast(value, dtype) for value in args),
            {name: _cast(value, dtype) for name, value in kwargs.items()},
        )

    def leave(module: nn.Module, *_: Any) -> None:
        if kept.get(module):
            module._parameters.update(kept[module].pop())

    owners = [m for m in model.modules() if any(p is not None for p in m._parameters.values())]
    hooks = [m.register_forward_pre_hook(enter, with_kwargs=True) for m in owners]
    hooks += [m.register_forward_hook(leave, always_call=True) for m in owners]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for module, parameters in kept.items():
            for original in reversed(parameters):
                module._parameters.update(original)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    floating = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if floating else value
