"""transformers and PEFT in this process: slow, plain, and what vLLM is checked against.

Adapters are put on the base and taken off again, never merged into it; a full checkpoint replaces
the base until the base is asked for again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from smmd_bench.contracts import EngineSession, EngineSettings

from ._transformers_session import TransformersSession


@dataclass(frozen=True)
class TransformersEngine:
    """Decodes with `generate` of transformers, on CUDA where there is one."""

    name: ClassVar[str] = "transformers"
    version: ClassVar[int] = 2

    def identity(self) -> Mapping[str, Any]:
        """Name and version of this plugin, and the versions of transformers and PEFT."""
        library = f"{version('transformers')}, peft {version('peft')}"
        return {"name": self.name, "version": self.version, "library": library}

    @contextmanager
    def open(self, base: Path, settings: EngineSettings) -> Iterator[EngineSession]:
        """Load `base`; leaving the context frees it."""
        import torch

        session = TransformersSession(base, settings)
        try:
            yield session
        finally:
            session.close()
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
