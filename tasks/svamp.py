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
from typing import Any, ClassVar

from smmd_bench.contracts import (
    Answer,
    DataSource,
    Example,
    HubData,
    Split,
    UserError,
    parse_number,
)

from ._final_answer import WordProblems
from ._word_problems import GENERATOR, WordProblem, made_problem

FORMAT = 1
"""Version of prompts and targets; `WordProblems.version` is that of reading answers."""
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
class SVAMP(WordProblems):
    """One-step word problems with numbers changed; a test only."""

    name: ClassVar[str] = "svamp"
    corpus: ClassVar[DataSource] = SOURCE
    corpus_licence: ClassVar[str] = "MIT (Arkil Patel, arkilpatel/SVAMP)"
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 0,
        "validation": 0,
        "test": 1000,
    }

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` problems in the order of their ids. Raises UserError but for test."""
        _test_only(split)
        if self.source == "synthetic":
            count = self.paper_sizes[split] if limit is None else limit
            problems = [made_problem("svamp", split, seed, at) for at in range(count)]
            return [_example(_row(at, problem)) for at, problem in enumerate(problems)]
        rows = sorted(SOURCE.rows("test"), key=_number_of)
        return [_example(row) for row in rows[:limit]]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The digest of the file; of problems made here generator and seed."""
        _test_only(split)
        if self.source == "synthetic":
            generator = {"source": self.source, "generator": GENERATOR, "seed": seed}
            return {"task": self.name, **generator, "format": FORMAT, "prompt": PROMPT}
        return {**SOURCE.identity("test"), "format": FORMAT, "prompt": PROMPT}


def _number_of(row: Mapping[str, Any]) -> int:
    # As texts, chal-10 would come before chal-9.
    return int(str(row["ID"]).rpartition("-")[2])


def _test_only(split: Split) -> None:
    if split != "test":
        raise UserError(
            f"svamp has no {split} split, it is a test: train on another task, such as gsm8k, "
            "which reports it too (`train-eval --task gsm8k`)."
        )


def _example(row: Mapping[str, Any]) -> Example:
    # Some bodies end without a full stop and one with two: in prompts all have one.
    body = str(row["Body"]).rstrip(" .\n")
    value = parse_number(str(row["Answer"]))
    if value is None:
        raise UserError(
            f"The answer of {row['ID']} of SVAMP is no number: copy the file again."
        )
    return Example(
        uid=f"svamp-{row['ID']}",
        prompt=PROMPT.format(
            body=f"{body}.".strip(), question=str(row["Question"]).strip()
        ),
        target=f" #### {value}",
        answer=Answer(value),
        attributes={"type": str(row["Type"]).replace("Divison", "Division")},
    )


def _row(at: int, problem: WordProblem) -> Mapping[str, Any]:
    """A problem made here in the columns of SVAMP."""
    body, _, question = problem.question.rpartition(". ")
    named = {"ID": f"synthetic-{at}", "Type": problem.template}
    return {**named, "Body": body, "Question": question, "Answer": problem.value}
