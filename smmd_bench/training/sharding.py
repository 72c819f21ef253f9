"""Weights that are spread over the processes of a training (FSDP2): how a Trainer comes to do so,
and how its weights come together again."""

from __future__ import annotations

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


def whole_weights(model: Any) -> dict[str, Tensor] | None:
    """The weights of a sharded model by name, on the CPU of the first process; None: no process has
    less than all. Every process must call it."""
    if not is_sharded():
        return None
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights: dict[str, Tensor] = get_model_state_dict(model, options=options)
    return weights
