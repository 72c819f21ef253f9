"""Float32 matrix products on a CPU: by oneDNN where it rounds no more than MKL does.

MKL uses half the width of AMD's vector units. torch gives float32 products to oneDNN only where it
may round them to bfloat16, which oneDNN does on units for that (Intel's AMX) alone.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

# positions, up to which attention by whole products is faster than by blocks
SHORT = 256


@contextmanager
def fast_products(model: Any, longest: int) -> Iterator[None]:
    """Inside, a float32 model trains faster on rows of at most `longest` positions, as exactly."""
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
