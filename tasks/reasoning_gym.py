r"""The tasks of the package `reasoning-gym` with one number as their answer (Apache-2.0;
Stojanovski et al. 2025, arXiv 2505.24760): `reasoning_gym[name=gcd,max_value=100]`.

One example of lcm: "Find the Least Common Multiple (LCM) of these numbers: 98, 54\nAnswer: " ->
"2646". Parameters are those of the package's configs, except lists. Splits have random seeds of
their own; as two seeds may ask the same, a hash of the question says its split as well.

Quirks: the package's `score_answer` gives a part of a point if a longer text holds the answer.
power_function asks for three digits, and its answers have seventeen. number_sequence is left out,
as a question can take it a minute, and maze, which has none for some seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import metadata
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from smmd_bench.contracts import (
    Answer,
    Example,
    Metric,
    Modality,
    Split,
    UserError,
    did_you_mean,
    parameter,
    percentage,
    plain_text,
)

from ._mixed_expressions import split_of
from .arithmetic import METRICS, PROMPT, Arithmetic

try:
    from reasoning_gym.factory import DATASETS
except ImportError as error:
    raise ImportError("it needs pip install 'smmd-bench[reasoning-gym]'") from error

FORMAT = 1
"""Version of splits, prompts and targets; `ReasoningGym.version` is that of reading answers."""
SEEDS = 10_000_000
"""Random seeds of a split, one a question, for one data seed."""
_NAMES = (
    "aiw", "basic_arithmetic", "binary_alternation", "chain_sum", "circuit_logic", "count_bits",
    "count_primes", "decimal_arithmetic", "decimal_chain_sum", "dice", "gcd", "gsm_symbolic",
    "largest_island", "lcm", "leg_counting", "letter_counting", "power_function", "products",
    "rectangle_count", "rotten_oranges", "self_reference", "simple_equations",
    "simple_geometry",
)  # fmt: skip


def _with_parameters(plugin: type) -> type:
    """Give a plugin the parameters of all configs, each with the type that the first one has."""
    tasks_of: dict[str, list[str]] = defaultdict(list)
    for task in _NAMES:
        for name, hint in get_type_hints(DATASETS[task][1]).items():
            has_kind = hint in (int, float, bool) or get_origin(hint) is Literal
            if has_kind and name != "size":
                plugin.__annotations__.setdefault(name, hint | None)
                tasks_of[name].append(task)

    for name, tasks in tasks_of.items():
        setattr(
            plugin, name, parameter(None, f"of {', '.join(tasks)}", added_later=True)
        )
    return plugin


@dataclass(frozen=True)
@_with_parameters
class ReasoningGym:
    """Procedural tasks of the package reasoning-gym whose answers are numbers."""

    name: ClassVar[str] = "reasoning_gym"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 32
    licence: ClassVar[str] = (
        "generated here; the generators are Apache-2.0 (reasoning-gym)"
    )
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 20_000,
        "validation": 500,
        "test": 2000,
    }

    task: str = parameter("chain_sum", f"one of {', '.join(_NAMES)}", name="name")

    def __post_init__(self) -> None:
        if self.task not in _NAMES:
            remedy = did_you_mean(self.task, _NAMES)
            raise ValueError(
                f"no task of that name has one number as its answer: {remedy}"
            )
        _make_dataset(self)

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` examples. Raises UserError if there are not so many questions."""
        count = self.paper_sizes[split] if limit is None else limit

        # Question i of the package has the seed plus i, so ranges must not overlap.
        dataset = _make_dataset(self, SEEDS * (3 * seed + get_args(Split).index(split)))

        examples: dict[str, Example] = {}

        # A bound, since a task with few different questions would draw forever.
        for index in range(1000 + 100 * count):
            if len(examples) == count:
                return [*examples.values()]
            entry = dataset[index]
            question, target = entry["question"], entry["answer"]
            # A copy would count in intervals as if it were a question of its own.
            if split_of(question) == split and question not in examples:
                examples[question] = Example(
                    uid=f"{split}-{seed}-{index}",
                    prompt=PROMPT.format(question=question),
                    target=target,
                    answer=self.parse(target),
                )

        raise UserError(
            f"{self.task} has {len(examples):,} different questions for {split}, not {count:,}: "
            "ask for fewer, or widen the ranges of its parameters."
        )

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The package's version and whole config, and the seed."""
        config = vars(_make_dataset(self).config)
        return {
            "task": self.task,
            "format": FORMAT,
            "split": split,
            "seed": seed,
            "reasoning-gym": metadata.version("reasoning-gym"),
            "config": {name: str(value) for name, value in config.items()},
        }

    def parse(self, completion: str) -> Answer | None:
        """The first line, which must be one number and nothing else."""
        return Arithmetic().parse(completion)

    def annotate(self, completion: str, target: str) -> Mapping[str, float]:
        """What the package's `score_answer` gives, which sees the whole text."""
        score = _make_dataset(self).score_answer(
            plain_text(completion), {"answer": target}
        )
        return {"gym_score": float(score)}

    def metrics(self) -> Sequence[Metric]:
        """Those of arithmetic, and the package's own score; see `select_by`."""
        return [
            *METRICS,
            percentage("gym_score", "reasoning-gym's score (%)", "gym_score"),
        ]

    @property
    def select_by(self) -> str:
        """The metric that selects the epoch: the error of decimals, which are seldom exact."""
        for example in self.examples("validation", 0, 10):
            if "." in example.target:
                return "mean_absolute_error"
        return "exact_match"


@lru_cache(8)
def _make_dataset(plugin: ReasoningGym, seed: int = 0) -> Any:
    """Make the package's data set. Raises ValueError for a parameter that its config refuses."""
    dataset, config = DATASETS[plugin.task]
    settings = {
        name: value for name, value in vars(plugin).items() if value is not None
    }
    del settings["task"]
    names = {field.name for field in fields(config)}
    if unknown := settings.keys() - names:
        remedy = did_you_mean(min(unknown), names)
        raise ValueError(f"{plugin.task} has no parameter {min(unknown)}: {remedy}")

    try:
        return dataset(config(**settings, seed=seed, size=SEEDS))
    # Configs check themselves by `assert`, with a message for people.
    except AssertionError as error:
        raise ValueError(f"{error}.") from None
