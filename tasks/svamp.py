r"""SVAMP: variations of simple word problems (Patel et al. 2021, arXiv 2103.07191; MIT licence).

One example: "Question: Each pack of dvds costs 76 dollars. If there is a discount of 25 dollars on
each pack. How much do you have to pay to buy each pack?\nAnswer:" -> " #### 51". A test without
training, as in the paper: all 1,000 problems, in GSM8K's format.

Source: SVAMP.json of github.com/arkilpatel/SVAMP, or hub ChilleD/SVAMP (its train and test splits
together are the same 1,000). Quirks: 358 bodies end without a full stop, one with two; one type
is misspelled ("Common-Divison"); answers are floats that are all whole. `svamp[source=synthetic]`
asks for problems of one step made here, each with a number that is not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import (
    Answer,
    DataSource,
    Example,
    HubData,
    Metric,
    Modality,
    Split,
    UserError,
    parameter,
    parse_number,
)

from ._final_answer import METRICS, final_answer, lm_eval_matches
from ._word_problems import GENERATOR, WordProblem, made_problem

FORMAT = 1
"""Version of prompts and targets; `SVAMP.version` is that of reading answers."""
PROMPT = "Question: {body} {question}\nAnswer:"
SOURCE = DataSource(
    "svamp",
    {"test": ("SVAMP.json",)},
    HubData(
        "ChilleD/SVAMP",
        "5e0bf1e5e7c0e9c4bc39180d224f41f3f801b7ef",
        None,
        {"test": ("train", "test")},
    ),
    columns=("ID", "Body", "Question", "Answer", "Type"),
)


@dataclass(frozen=True)
class SVAMP:
    """One-step word problems with numbers changed; a test only."""

    name: ClassVar[str] = "svamp"
    version: ClassVar[int] = 3
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 512
    paper_sizes: ClassVar[Mapping[Split, int]] = {"train": 0, "validation": 0, "test": 1000}

    source: Literal["corpus", "synthetic"] = parameter(
        "corpus", "corpus: --data-dir or the hub; synthetic: problems made here"
    )

    @property
    def licence(self) -> str:
        """Of the problems in use."""
        if self.source == "synthetic":
            return "synthetic word problems, made here"
        return "MIT (Arkil Patel, arkilpatel/SVAMP)"

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """Where rows come from; none where the problems are made."""
        return () if self.source == "synthetic" else (SOURCE,)

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        """The first `limit` problems in the order of their ids. Raises UserError but for test."""
        _test_only(split)
        if self.source == "synthetic":
            count = self.paper_sizes[split] if limit is None else limit
            made = [made_problem("svamp", split, seed, at) for at in range(count)]
            return [_made_example(f"svamp-synthetic-{at}", p) for at, p in enumerate(made)]
        rows = sorted(SOURCE.rows("test"), key=lambda row: int(str(row["ID"]).rpartition("-")[2]))
        return [_example(row) for row in rows[:limit]]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The digest of the file; of problems made here generator and seed."""
        _test_only(split)
        if self.source == "synthetic":
            made = {"source": self.source, "generator": GENERATOR, "seed": seed}
            return {"task": self.name, **made, "format": FORMAT, "prompt": PROMPT}
        return {**SOURCE.identity("test"), "format": FORMAT, "prompt": PROMPT}

    def parse(self, completion: str) -> Answer | None:
        """As GSM8K: the number after the last ####, or the last number of all."""
        return final_answer(completion)

    def annotate(self, completion: str, target: str) -> Mapping[str, bool]:
        """Whether it is right by the two rules of lm-eval's gsm8k."""
        return lm_eval_matches(completion, target)

    def metrics(self) -> Sequence[Metric]:
        """Those of GSM8K."""
        return METRICS


def _test_only(split: Split) -> None:
    if split != "test":
        raise UserError(
            f"svamp has no {split} split, it is a test: train on another task, such as gsm8k, "
            "which reports it too (`train-eval --task gsm8k`)."
        )


def _example(row: Mapping[str, Any]) -> Example:
    body = str(row["Body"]).rstrip(" .\n")
    value = parse_number(str(row["Answer"]))
    if value is None:
        raise UserError(f"The answer of {row['ID']} of SVAMP is no number: copy the file again.")
    return Example(
        uid=f"svamp-{row['ID']}",
        prompt=PROMPT.format(
            body=f"{body}.".strip(),
            question=str(row["Question"]).strip(),
        ),
        target=f" #### {value}",
        answer=Answer(value),
        attributes={"type": str(row["Type"]).replace("Divison", "Division")},
    )


def _made_example(uid: str, problem: WordProblem) -> Example:
    body, _, question = problem.question.rpartition(". ")
    return Example(
        uid=uid,
        prompt=PROMPT.format(body=f"{body}.", question=question),
        target=f" #### {problem.value}",
        answer=Answer(problem.value),
        attributes={"type": problem.template},
    )
