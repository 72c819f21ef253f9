"""The text of a plugin file."""

LOSS = '''
from dataclasses import dataclass
from typing import ClassVar
from smmd_bench.contracts import parameter

@dataclass(frozen=True)
class Mine:
    """A loss of my own."""
    name: ClassVar[str] = "mine"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = parameter(1.0, "weight", name="lambda")
    def bind(self, vocabulary): ...
'''
