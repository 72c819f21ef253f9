r"""Tasks of the package `reasoning-gym` with one number as their answer (Stojanovski et al. 2025,
arXiv 2505.24760; Apache-2.0): `reasoning_gym[name=gcd,max_value=100]`.

One example of gcd: "Find the Greatest Common Divisor (GCD) of these numbers: 26, 760. Give only the
GCD as your final answer.\nAnswer: " -> "2". Parameters are those of the package's configs, but for
their lists. Each question is made from a seed of its own, and those of two splits are never the
same; a hash of the question says its split as well, since other seeds may ask the same.

Quirks: its `score_answer` gives a part of a point where the answer stands in a longer text, and
that of decimal_arithmetic, say, one for numbers that are nearly equal: `gym_score` is its mean.
number_sequence is left out, because one of its questions can take a minute to make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import blake2b
from importlib import metadata
from itertools import islice
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from smmd_bench.contracts import (
    Answer,
    Example,
    Metric,
    Modality,
    Split,
    UserError,
    did_you_mean,
    parameter,
    parse_number,
    percentage,
    plain_text,
)
from smmd_bench.plugin_system.parameters import canonical

from .arithmetic import METRICS, PROMPT

try:
    from reasoning_gym.factory import DATASETS
except ImportError as error:
    raise ImportError("it needs pip install 'smmd-bench[reasoning-gym]'") from error

FORMAT = 1
"""Version of splits, prompts and targets; `ReasoningGym.version` is that of reading answers."""
NAMES = (
    "aiw", "basic_arithmetic", "binary_alternation", "chain_sum", "circuit_logic", "coin_flip",
    "count_bits", "count_primes", "decimal_arithmetic", "decimal_chain_sum", "dice", "gcd",
    "gsm_symbolic", "largest_island", "lcm", "leg_counting", "letter_counting", "maze",
    "number_format", "power_function", "products", "rectangle_count", "rotten_oranges",
    "self_reference", "simple_equations", "simple_geometry",
)  # fmt: skip
"""Those whose every answer is one number, for which `score_answer` gives 1."""
SEEDS = 10_000_000
"""What each split has of them, for one data seed."""
MOST_REPEATED = 5000
"""Questions in a row of which none is new: then there are no more."""
_OF_THE_HARNESS = ("name", "seed", "size")
_Plugin = TypeVar("_Plugin", bound=type)


def _with_parameters(plugin: _Plugin) -> _Plugin:
    """Give a plugin the parameters of all configs, as texts that pydantic reads by their types."""
    owners: dict[str, list[str]] = defaultdict(list)
    for task in NAMES:
        for name, hint in get_type_hints(DATASETS[task][1]).items():
            is_list = hint is tuple or getattr(hint, "__origin__", hint) in (list, tuple)
            if name not in _OF_THE_HARNESS and not is_list:
                owners[name].append(task)
    for name, tasks in owners.items():
        plugin.__annotations__[name] = str | None
        setattr(plugin, name, parameter(None, f"of {', '.join(tasks)}", added_later=True))
    return plugin


@dataclass(frozen=True)
@_with_parameters
class ReasoningGym:
    """Procedural tasks of the package reasoning-gym whose answers are numbers."""

    name: ClassVar[str] = "reasoning_gym"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 32
    licence: ClassVar[str] = "generated here; the generators are Apache-2.0 (reasoning-gym)"
    paper_sizes: ClassVar[Mapping[Split, int]] = {"train": 20_000, "validation": 500, "test": 2000}

    dataset: str = parameter("chain_sum", f"one of {', '.join(NAMES)}", name="name")

    def __post_init__(self) -> None:
        if self.dataset not in NAMES:
            raise UserError(
                f"reasoning_gym[name={self.dataset}] is no task of the package whose answers are "
                f"one number each: {did_you_mean(self.dataset, NAMES)}"
            )
        _ = self._make(seed=0)

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        """The first `limit` examples. Raises UserError if there are not so many questions."""
        count = self.paper_sizes[split] if limit is None else limit
        examples = _generate(self, split, seed, count)
        if len(examples) < count:
            raise UserError(
                f"reasoning_gym[name={self.dataset}] has {len(examples):,} different questions for "
                f"{split}, not {count:,}: ask for fewer, or widen the range of its parameters."
            )
        return examples

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """Version of the package, its whole config, and the seed."""
        config = {name: str(value) for name, value in vars(self._make(seed=0).config).items()}
        package = {"package": metadata.version("reasoning-gym"), "config": config}
        return {"task": self.name, "format": FORMAT, **package, "name": self.dataset,
                "split": split, "seed": seed}  # fmt: skip

    def parse(self, completion: str) -> Answer | None:
        """The first line, which must be one number and nothing else."""
        value = parse_number(plain_text(completion).partition("\n")[0])
        return None if value is None else Answer(value)

    def annotate(self, completion: str, target: str) -> Mapping[str, float]:
        """What the package's `score_answer` gives, which sees the whole text."""
        entry = {"answer": target, "metadata": {}}
        score = self._make(seed=0).score_answer(plain_text(completion), entry)
        return {"gym_score": float(score)}

    def metrics(self) -> Sequence[Metric]:
        """Those of arithmetic, of which exact match selects, and the package's own score."""
        return (*METRICS, percentage("gym_score", "reasoning-gym's score (%)", "gym_score"))

    @property
    def select_by(self) -> str:
        """The metric that selects the epoch: the error of decimals, which are seldom exact."""
        first = self.examples("validation", 0, 20)
        has_decimals = any("." in example.target for example in first)
        return "mean_absolute_error" if has_decimals else "exact_match"

    def _make(self, seed: int) -> Any:
        return _make_dataset(self, seed)


@lru_cache(8)
def _make_dataset(task: ReasoningGym, seed: int) -> Any:
    """Make the package's data set. Raises UserError for a parameter that its config refuses."""
    dataset, config = DATASETS[task.dataset]
    names = {field.name for field in fields(config)} - {*_OF_THE_HARNESS}
    values = {name: text for name, text in vars(task).items() if text and name != "dataset"}
    unknown = min(values.keys() - names, default=None)
    if unknown is not None:
        raise UserError(
            f"Unknown parameter '{unknown}' of reasoning_gym[name={task.dataset}]: "
            f"{did_you_mean(unknown, names)}"
        )
    try:
        made = TypeAdapter(config).validate_python({**values, "seed": seed, "size": SEEDS})
        return dataset(made)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(f"{canonical(task)}: {place}: {first['msg']}.") from None
    except AssertionError as error:
        raise UserError(f"{canonical(task)}: {error}.") from None


def _draw(task: ReasoningGym, split: Split, seed: int) -> Iterator[Example]:
    """Draw different questions, until none is new."""
    start = (seed * len(get_args(Split)) + get_args(Split).index(split)) * SEEDS
    dataset = _make_dataset(task, start)
    seen: set[str] = set()
    newest = 0
    for index in range(SEEDS):
        entry = dataset[index]
        question, target = str(entry["question"]), str(entry["answer"])
        if question not in seen and _split_of(question) == split:
            seen.add(question)
            newest = index
            yield _make_example(task, f"{split}-{seed}-{index}", question, target)
        if index - newest > MOST_REPEATED:
            return


def _split_of(question: str) -> str:
    """The split that owns a question, by its hash: train 80%, validation 10%, test 10%."""
    digest = blake2b(question.encode(), digest_size=8).digest()
    return {0: "validation", 1: "test"}.get(int.from_bytes(digest) % 10, "train")


def _make_example(task: ReasoningGym, uid: str, question: str, target: str) -> Example:
    value = parse_number(target)
    if value is None:
        raise UserError(
            f"reasoning_gym[name={task.dataset}] answers {target!r}, which is not one number: "
            f"choose other parameters, or one of {', '.join(NAMES)}."
        )
    return Example(uid, PROMPT.format(question=question), target, Answer(value))


@lru_cache(8)
def _generate(task: ReasoningGym, split: Split, seed: int, count: int) -> Sequence[Example]:
    return [*islice(_draw(task, split, seed), count)]
