r"""GSM8K: grade-school word problems (Cobbe et al. 2021, arXiv 2110.14168; MIT licence).

One example, with `calculator=strip`: "Question: Weng earns $12 an hour for babysitting. Yesterday,
she just did 50 minutes of babysitting. How much did she earn?\nAnswer:" -> " Weng earns 12/60 =
$0.2 per minute.\nWorking 50 minutes, she earned 0.2 x 50 = $10.\n#### 10". The prompt is
that of lm-eval's `gsm8k`, without shots, and so is the target with `calculator=keep`.

Source: hub openai/gsm8k, or train.jsonl and test.jsonl of github.com/openai/grade-school-math.
Quirks: nearly every solution has calculator notes such as <<48/2=24>>; 79 answers of the train set
have thousands separators ("1,080"). There is no validation split: 500 of the 7,473 train rows are
set aside, by the data seed. `gsm8k[source=synthetic]` asks for easier problems made here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import (
    DataSource,
    Example,
    HubData,
    Split,
    UserError,
    parameter,
    parse_number,
)

from ._final_answer import MARK, WordProblems, final_answer
from ._word_problems import GENERATOR, made_problem

FORMAT = 1
"""Version of prompts and targets; `WordProblems.version` is that of reading answers."""
PROMPT = "Question: {question}\nAnswer:"
VALIDATION = 500
"""Rows set aside for validation; a tenth of a train file that has fewer than 5,000."""
SOURCE = DataSource(
    "gsm8k",
    {
        "train": ("train.jsonl", "main/train-00000-of-00001.parquet"),
        "test": ("test.jsonl", "main/test-00000-of-00001.parquet"),
    },
    HubData(
        "openai/gsm8k",
        "e53f048856ff4f594e959d75785d2c2d37b678ee",
        "main",
        {"train": ("train",), "test": ("test",)},
    ),
    columns=("question", "answer"),
)
_NOTE = re.compile(r"<<[^<>]*>>")


@dataclass(frozen=True)
class GSM8K(WordProblems):
    """Word problems with step-by-step solutions; the answer stands after ####."""

    name: ClassVar[str] = "gsm8k"
    corpus: ClassVar[DataSource] = SOURCE
    corpus_licence: ClassVar[str] = "MIT (OpenAI, openai/grade-school-math)"
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 6973,
        "validation": 500,
        "test": 1319,
    }

    calculator: Literal["strip", "keep"] = parameter(
        "strip", "what happens to the calculator notes <<48/2=24>> in the solutions"
    )

    @property
    def transfers(self) -> tuple[str, ...]:
        """SVAMP, from the same source."""
        return ("svamp[source=synthetic]" if self.source == "synthetic" else "svamp",)

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` examples; train and validation in an order that the seed draws."""
        if self.source == "synthetic":
            count = self.paper_sizes[split] if limit is None else limit
            problems = [made_problem("gsm8k", split, seed, at) for at in range(count)]
            prefix = f"gsm8k-synthetic-{split}"
            rows = list(enumerate(map(asdict, problems)))
        elif split == "test":
            prefix = "gsm8k-test"
            rows = list(enumerate(SOURCE.rows("test")))
        else:
            # The data set has no validation split: the first rows in a drawn order are set aside.
            prefix = "gsm8k-train"
            # Numbered before they are shuffled: a uid names the same row at every seed.
            rows = list(enumerate(SOURCE.rows("train")))
            random.Random(f"gsm8k {seed}").shuffle(rows)
            aside = min(VALIDATION, len(rows) // 10)
            rows = rows[:aside] if split == "validation" else rows[aside:]
        return [self._example(f"{prefix}-{index}", row) for index, row in rows[:limit]]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The digest of the file and the seed where it draws, or the generator."""
        identity: Mapping[str, Any]
        if self.source == "synthetic":
            identity = {
                "task": self.name,
                "source": self.source,
                "templates": "seen",
                "generator": GENERATOR,
                "split": split,
                "seed": seed,
            }
        elif split == "test":
            identity = SOURCE.identity("test")
        else:
            # Both splits are of the train file, from which the seed draws the validation.
            drawn = {"seed": seed, "validation": VALIDATION}
            identity = {**SOURCE.identity("train"), **drawn}
        formatting = {"format": FORMAT, "calculator": self.calculator, "prompt": PROMPT}
        return {**identity, **formatting}

    def _example(self, uid: str, row: Mapping[str, Any]) -> Example:
        solution = str(row["answer"])
        if self.calculator == "strip":
            solution = _NOTE.sub("", solution)
        steps, mark, number = solution.rpartition(MARK)

        # Read as completions are: a target that the parser misses could never be right.
        answer = final_answer(solution)
        value = parse_number(number) if mark else None
        if answer is None or answer.value != value:
            raise UserError(
                f"The answer of {uid} must end in #### and one number, and ends in "
                f"{solution[-60:]!r}: correct the row or copy the file again."
            )
        return Example(
            uid=uid,
            prompt=PROMPT.format(question=row["question"]),
            target=f" {solution}",
            answer=answer,
            answer_start=len(f" {steps}{mark}"),
        )
