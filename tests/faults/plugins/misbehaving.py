"""Losses that do in `bind` or in `forward` what a plugin's bug may do."""

import os
import sys
import time
from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import NumericLoss


class _Bound(NumericLoss):
    def forward(self, numeric):
        return self.loss.work(numeric)


@dataclass(frozen=True)
class Good:
    name: ClassVar[str] = "good"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: ClassVar[float] = 1.0

    def bind(self, vocabulary):
        return _Bound(self, vocabulary)

    def work(self, numeric):
        return 0 * numeric.logits.sum(), numeric.target.numel()


class BindRaises(Good):
    name = "bind-raises"

    def bind(self, vocabulary):
        raise ValueError("mine")


class BindExits(Good):
    name = "bind-exits"

    def bind(self, vocabulary):
        sys.exit(3)


class WorkIsRubbish(Good):
    name = "work-is-rubbish"

    def work(self, numeric):
        return "a", None


class WorkDies(Good):
    name = "work-dies"

    def work(self, numeric):
        os._exit(5)


class WorkSleeps(Good):
    name = "work-sleeps"

    def work(self, numeric):
        time.sleep(3600)
