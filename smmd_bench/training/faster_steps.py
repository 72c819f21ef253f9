"""What makes a step faster: fewer casts and walks and better products, which change no number, and
compiled layers, which round otherwise."""

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..contracts.executor import is_sharded
from ..errors import UserError

# positions, up to which attention by whole products is faster than by blocks
SHORT = 256


@contextmanager
def fast_products(model: Any, longest: int) -> Iterator[None]:
    """Inside, a float32 model on a CPU is faster on rows of at most `longest` positions.

    Its matrix products go to oneDNN where that rounds no more than MKL does. MKL uses half the
    width of AMD's vector units. torch gives float32 products to oneDNN only where it may round them
    to bfloat16, which oneDNN does on units for that (Intel's AMX) alone.
    """
    if (model.device.type, model.dtype) != ("cpu", torch.float32):
        yield
        return

    flags = torch.backends.mkldnn.matmul
    original = flags.fp32_precision
    matrix = torch.arange(256.0**2).cos().reshape(256, 256)
    wide = matrix.double()
    flags.fp32_precision = "bf16"
    try:
        # The error is 2e-6 in float32, and 6e-2 in bfloat16.
        exact = torch.allclose((matrix @ matrix).double(), wide @ wide, atol=1e-4)
        flags.fp32_precision = "bf16" if exact else original
        attention: AbstractContextManager[None] = nullcontext()
        if exact and longest <= SHORT:
            attention = sdpa_kernel(SDPBackend.MATH)
        with attention:
            yield
    finally:
        flags.fp32_precision = original


@contextmanager
def few_walks(trainer: Any) -> Iterator[None]:
    """Inside, what the Trainer calls at every step visits the modules only where it must.

    A walk over the modules of a large model takes as long as several of its layers. (With several
    processes gradients are still dropped by a walk, which DDP's wrapper makes.)
    """
    model = trainer.model
    model.train()

    def train(mode: bool = True) -> Any:
        return model if mode == model.training else type(model).train(model, mode)

    def zero_grad(set_to_none: bool = True) -> None:
        for parameter in trainer.trained_parameters:
            parameter.grad = None

    model.train, model.zero_grad = train, zero_grad
    try:
        yield
    finally:
        del model.train, model.zero_grad


@contextmanager
def without_casts(model: Any, *, autocast: bool) -> Iterator[None]:
    """Inside, adapters leave the dtype of their inputs, where that changes no number.

    An adapter casts its input to its own float32, and autocast casts it back.
    """
    configs = getattr(model, "peft_config", {}).values()
    # Dropout between the two casts would draw another mask.
    if not configs or not autocast or any(config.lora_dropout for config in configs):
        yield
        return

    from peft.helpers import disable_input_dtype_casting

    with disable_input_dtype_casting(model):
        yield


@contextmanager
def with_casts(model: Any) -> Iterator[None]:
    """Inside, adapters cast their inputs again: for a pass that has no autocast."""
    uncast = []
    for layer in model.modules():
        if not getattr(layer, "cast_input_dtype_enabled", True):
            layer.cast_input_dtype_enabled = True
            uncast.append(layer)
    try:
        yield
    finally:
        for layer in uncast:
            layer.cast_input_dtype_enabled = False


def compile_layers(model: Any) -> None:
    """Let torch compile each layer of the model, adapters included, in place: names stay.

    Lengths differ from batch to batch and are dynamic; the objective is not compiled. It comes
    last before a training: any other pass would be compiled, too, and used once. Raises
    UserError with FSDP2, without a C++ compiler, or where transformers marks no layers.
    """
    if is_sharded():
        raise UserError("compile=true is not tried with strategy=fsdp2: leave one out.")

    from transformers.modeling_layers import GradientCheckpointingLayer

    # torch looks nowhere else.
    if not shutil.which(os.environ.get("CXX") or "g++"):
        raise UserError(
            "compile=true needs a C++ compiler, and none is on PATH: install g++, name one in CXX, "
            "or leave compile out."
        )
    layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
    if not layers:
        raise UserError(
            f"transformers marks no layers of {type(model).__name__} that could be compiled: leave "
            "compile out."
        )
    for layer in layers:
        layer.compile(dynamic=True)
