"""Each defect of a task is found by the check that is for it, and by no other."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from smmd_bench.conformance import tasks
from smmd_bench.conformance.task_data import fingerprints
from smmd_bench.conformance.tasks import task_findings
from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    MeanAbsoluteError,
    Metric,
    Modality,
    RSquared,
    Split,
    parse_number,
    plain_text,
)
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_task

DATA = Path(__file__).parents[1] / "data"
_calls = count()


@dataclass(frozen=True)
class Good:
    """A small task without a fault."""

    name: ClassVar[str] = "good"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 8
    licence: ClassVar[str] = "made here"
    paper_sizes: ClassVar[Mapping[Split, int]] = {"train": 40, "validation": 20, "test": 30}

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        first = {"train": 0, "validation": 10_000, "test": 20_000}[split] + 1000 * seed
        sizes = self.paper_sizes[split] if limit is None else limit
        return [self.example(split, first + i) for i in range(sizes)]

    def example(self, split: Split, n: int) -> Example:
        answer = Answer(Fraction(n + 1))
        return Example(f"{split}-{n}", f"After {n}?\n", str(n + 1), answer, attributes={"size": n})

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {"generator": 1, "split": split, "seed": seed}

    def parse(self, completion: str) -> Answer | None:
        value = parse_number(plain_text(completion))
        return None if value is None else Answer(value)

    def metrics(self) -> Sequence[Metric]:
        return (ExactMatch(), MeanAbsoluteError())


class WithoutLicence(Good):
    licence: ClassVar[str] = ""


class SameIds(Good):
    def example(self, split: Split, n: int) -> Example:
        return dataclasses.replace(super().example(split, n), uid=f"{split}-{n % 7}")


class SharedQuestions(Good):
    def example(self, split: Split, n: int) -> Example:
        n -= 20_000 * (split == "test")
        return super().example(split, n)


class GrowsWithN(Good):
    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        return list(super().examples(split, seed, limit))[::-1]


class SeedOutsideIdentity(Good):
    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {"generator": 1, "split": split}


class SeedWithoutEffect(Good):
    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        return super().examples(split, 0, limit)


class AnotherIdentityEachTime(Good):
    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {**super().identity(split, seed), "call": next(_calls)}


class TargetThatIsNotRead(Good):
    def example(self, split: Split, n: int) -> Example:
        return dataclasses.replace(super().example(split, n), target=f"it is {n + 1}")


class RationaleWithoutStart(Good):
    """Its targets begin with other numbers than the answer."""

    def example(self, split: Split, n: int) -> Example:
        example = super().example(split, n)
        return dataclasses.replace(example, target=f"{n} + 1 = {example.target}")

    def parse(self, completion: str) -> Answer | None:
        return super().parse(completion.rpartition("=")[2])


class RationaleWithStart(RationaleWithoutStart):
    def example(self, split: Split, n: int) -> Example:
        example = super().example(split, n)
        return dataclasses.replace(example, answer_start=example.target.index("=") + 1)


class StartBeyondTheTarget(Good):
    def example(self, split: Split, n: int) -> Example:
        return dataclasses.replace(super().example(split, n), answer_start=50)


class ReservedAttribute(Good):
    def example(self, split: Split, n: int) -> Example:
        return dataclasses.replace(super().example(split, n), attributes={"seed": n})


class AttributesThatDiffer(Good):
    def example(self, split: Split, n: int) -> Example:
        facts = {"size": n} if n % 2 else {"length": n}
        return dataclasses.replace(super().example(split, n), attributes=facts)


class ParserThatRaises(Good):
    def parse(self, completion: str) -> Answer | None:
        return Answer(Fraction(completion))


class ReadsWhatNobodySees(Good):
    def parse(self, completion: str) -> Answer | None:
        value = parse_number(completion.partition("\n")[0])
        return None if value is None else Answer(value)


class FirstParagraph(Good):
    """As `samsum` once was: what selects is not what `parse` reads."""

    def annotate(self, completion: str, target: str) -> Mapping[str, float]:
        return {"share": float(completion.partition("\n\n")[0] == target)}

    def metrics(self) -> Sequence[Metric]:
        return (Shared(), ExactMatch())


class PictureInATextTask(Good):
    def example(self, split: Split, n: int) -> Example:
        return dataclasses.replace(super().example(split, n), images=(Path(__file__),))


class Reduces(ExactMatch):
    name: ClassVar[str] = "reduces_everything"

    def statistic(self, *columns: Any, axis: int = -1) -> Any:
        return np.asarray(100 * columns[0].mean())


class Inverted(RSquared):
    name: ClassVar[str] = "inverted"
    better: ClassVar[Any] = "lower"


class Shared(ExactMatch):
    name: ClassVar[str] = "shared"
    columns: ClassVar[tuple[str, ...]] = ("share",)


class Share(ExactMatch):
    name: ClassVar[str] = "share_beyond_100"

    def statistic(self, *columns: Any, axis: int = -1) -> Any:
        return 2 * super().statistic(*columns, axis=axis)


def with_metric(metric: Metric) -> Good:
    class Measured(Good):
        def metrics(self) -> Sequence[Metric]:
            return (ExactMatch(), metric)

    return Measured()


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task of a test has no file from which another process could load it."""

    monkeypatch.setattr(
        tasks, "fingerprints_elsewhere", lambda data: fingerprints(data.task, data.few)
    )


def states(task: Any) -> dict[str, str]:
    return {finding.check: finding.state for finding in task_findings(task)}


@pytest.mark.parametrize("task", [Good(), RationaleWithStart()], ids=lambda x: type(x).__name__)
def test_a_task_without_a_fault_passes_every_check(task: Good) -> None:
    assert set(states(task).values()) == {"passed"}


@pytest.mark.parametrize(
    ("task", "check"),
    [
        (WithoutLicence(), "licence and source"),
        (SameIds(), "ids"),
        (SharedQuestions(), "splits"),
        (GrowsWithN(), "first n"),
        (SeedOutsideIdentity(), "seeds"),
        (SeedWithoutEffect(), "seeds"),
        (RationaleWithoutStart(), "answer_start"),
        (StartBeyondTheTarget(), "answer_start"),
        (ReservedAttribute(), "attributes"),
        (AttributesThatDiffer(), "attributes"),
        (PictureInATextTask(), "images"),
        (ReadsWhatNobodySees(), "invisible characters"),
        (FirstParagraph(), "invisible characters"),
        (with_metric(Reduces()), "metrics"),
        (with_metric(Inverted()), "metrics"),
        (with_metric(Share()), "metrics"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_defect_is_found_by_its_check(task: Good, check: str) -> None:
    found = {name: state for name, state in states(task).items() if state != "passed"}
    if check == "attributes" and isinstance(task, ReservedAttribute):
        found.pop("metrics", None)  # scoring refuses such a column, too
    assert found == {check: "failed"}


@pytest.mark.parametrize(
    ("task", "check"),
    [
        (AnotherIdentityEachTime(), "reproducible"),
        (TargetThatIsNotRead(), "parse(target)"),
        (ParserThatRaises(), "parse"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_defect_with_consequences_is_among_what_is_found(task: Good, check: str) -> None:
    assert states(task)[check] == "failed"


def test_a_broken_picture_is_found(tmp_path: Path) -> None:
    class Pictures(Good):
        modality: ClassVar[Modality] = Modality.VISION

        def example(self, split: Split, n: int) -> Example:
            picture = tmp_path / f"{n}.png"
            if not picture.exists():
                Image.new("RGB", (8, 8)).save(picture)
            return dataclasses.replace(super().example(split, n), images=(picture,))

    assert states(Pictures())["images"] == "passed"
    (tmp_path / "20003.png").write_bytes(b"no picture")
    assert states(Pictures())["images"] == "failed"


def test_data_that_are_not_here_are_no_failure() -> None:
    class Elsewhere(Good):
        def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
            raise UserError("The data cannot be fetched: run `smmd-bench prepare good`.")

    found = task_findings(Elsewhere())
    assert {f.state for f in found} == {"passed", "unchecked"}
    assert "smmd-bench prepare good" in next(f.detail for f in found if f.check == "examples")


@pytest.mark.parametrize("name", ["arithmetic", "gsm8k", "svamp", "samsum"])
def test_the_text_tasks_here_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))
    found = states(load_task(name))
    assert "failed" not in found.values()
    assert found["parse(target)"] == "passed"
