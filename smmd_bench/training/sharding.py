"""Weights that are spread over the processes of a training (FSDP2): how a Trainer comes to do so,
and how its weights come together again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..contracts.executor import is_sharded


def let_cpu_shard() -> None:
    """Let the next Trainer shard on a CPU, too, where the executor asks for it.

    accelerate shards on accelerators alone, so it is told that there is one. It corrects that when
    it has decided, and asks for none later.
    """
    if is_sharded() and not torch.cuda.is_available():
        from accelerate.state import DistributedType, PartialState

        PartialState().distributed_type = DistributedType.MULTI_XPU


def reduce_in_float32(accelerator: Any) -> None:
    """Let a sharded model in bfloat16 add up gradients in float32, as DDP does, and leave its
    outputs as they are; accelerate would make both bfloat16."""
    if is_sharded() and accelerator.mixed_precision == "bf16":
        from torch.distributed.fsdp import MixedPrecisionPolicy

        accelerator.state.fsdp_plugin.mixed_precision_policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32
        )


def can_resume(state: Path) -> bool:
    """Whether a Trainer's state is one of sharded weights as this training has, or has not."""
    return (state / "pytorch_model_fsdp.bin").exists() == is_sharded()


def whole_weights(model: Any) -> dict[str, Tensor] | None:
    """The weights of a sharded model by name, on the CPU of the first process: tied ones once, and
    of an adapter its own. None: each process has all. Every process must call it."""
    if not is_sharded():
        return None
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    adapter = hasattr(model, "peft_config")
    options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=adapter)
    weights: dict[str, Tensor] = get_model_state_dict(model, options=options)
    own, shared = (dict(model.named_parameters(remove_duplicate=r)) for r in (True, False))
    return {name: w for name, w in weights.items() if name in own or name not in shared}
