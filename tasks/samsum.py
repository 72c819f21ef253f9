r"""SAMSum: summaries of messenger dialogues (Gliwa et al. 2019, arXiv 1911.12237).

One example (of our own, not of the corpus): "Summarize the dialogue.\n\nIda: Did you feed the
hens?\nOle: Not yet, going now.\n\nSummary:" -> " Ole is going to feed the hens now."

The licence, CC BY-NC-ND 4.0, forbids to pass changed copies on: nothing of the corpus is here.

Source: train.json, val.json and test.json of the authors' archive (corpus.7z beside the paper on
arXiv), or hub knkarthick/samsum at a pinned commit; the authors' own Samsung/samsum is gone
(huggingface/datasets issue 7573). Quirks: lines end in \r\n or \n; an empty dialogue is kept, so
that n is the paper's. Sizes are those that Gliwa et al. give: the corpus was never read here.

ROUGE-1, ROUGE-2 and ROUGE-L are F1 by Google's rouge-score (Lin 2004, aclanthology W04-1013), with
stemming as in lm-eval's cnn_dailymail; `evaluate.load("rouge")` does not stem, and is lower then.
The paper does not say which it uses.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, cycle
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import (
    Answer,
    DataSource,
    Example,
    HubData,
    Metric,
    Modality,
    Split,
    TruncationRate,
    UserError,
    parameter,
    percentage,
    plain_text,
)

KINDS = ("rouge1", "rouge2", "rougeL")
FORMAT = 1
"""Version of prompts and targets; `SAMSum.version` is that of reading summaries."""
PROMPT = "Summarize the dialogue.\n\n{dialogue}\n\nSummary:"
UNTIL = "\n\n"
"""A summary is one paragraph: what an untuned model writes after it is not scored."""
SOURCE = DataSource(
    "samsum",
    {"train": ("train.json",), "validation": ("val.json",), "test": ("test.json",)},
    HubData(
        "knkarthick/samsum",
        "f8040674894a743112febaddde2b32264c07bb20",
        None,
        {split: (split,) for split in ("train", "validation", "test")},
    ),
    columns=("summary",),
)
GENERATOR = 2
"""Version of the dialogues that are made here."""
_NAMES = (
    "Ada", "Bruno", "Clara", "Dora", "Emil", "Fynn", "Greta", "Hana", "Ivo", "Jana", "Karl", "Lena",
    "Mia", "Noah", "Olga", "Paul", "Rosa", "Simon", "Tina", "Viktor",
)  # fmt: skip
_THINGS = (
    "the tent",
    "a cake",
    "the keys",
    "the bike",
    "the scarf",
    "an umbrella",
    "the camera",
)
_COUNTED = (
    "chairs",
    "cups",
    "plates",
    "tickets",
    "bottles",
    "candles",
    "boxes",
    "balloons",
)
_PLACES = (
    "at the station", "at school", "in the park", "at the library", "at home", "at the museum",
    "at the harbor", "in the garden",
)  # fmt: skip
_DAYS = (
    "tonight",
    "tomorrow",
    "on Monday",
    "on Tuesday",
    "on Friday",
    "on Sunday",
    "next week",
)
_SMALL_TALK = (
    ("How are you?", "Fine, thanks."), ("Is your cold better?", "Much better."),
    ("Did you see the game?", "No, I was at work."), ("It is so hot today.", "Yes, it is."),
)  # fmt: skip
_SUMMARIES = (
    "{two} will bring {thing} for {one} {when} {place}.",
    "{one} asks {two} to bring {thing}. They will meet {when} {place}.",
    "{two} and {one} will meet {place} {when}. {two} will bring {thing}.",
    "{two} will come with {thing} {when} {place}, as {one} asked.",
)
"""One of them, whatever was said, as people differ: no model can know all the words."""


def rouge(text: str, reference: str) -> Mapping[str, float]:
    """The F1, from 0 to 1, of a text against one reference: `rouge1`, `rouge2` and `rougeL`."""
    scores = _scorer().score(reference, text)
    return {kind: float(scores[kind].fmeasure) for kind in KINDS}


@cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # brings in nltk: seconds

    return RougeScorer(list(KINDS), use_stemmer=True)


METRICS: tuple[Metric, ...] = (
    percentage("rougeL", "ROUGE-L", "rougeL"), percentage("rouge1", "ROUGE-1", "rouge1"),
    percentage("rouge2", "ROUGE-2", "rouge2"), TruncationRate(),
)  # fmt: skip
"""Of summaries: ROUGE-L selects, since it sees the order of the words."""


@dataclass(frozen=True)
class SAMSum:
    """Dialogues with a summary each; scored by ROUGE."""

    name: ClassVar[str] = "samsum"
    version: ClassVar[int] = 3
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 128
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 14732,
        "validation": 818,
        "test": 819,
    }

    source: Literal["corpus", "synthetic"] = parameter(
        "corpus", "corpus: --data-dir or the hub; synthetic: easier dialogues made here"
    )

    @property
    def licence(self) -> str:
        """Of the dialogues in use."""
        if self.source == "synthetic":
            return "synthetic dialogues, made here"
        return "CC BY-NC-ND 4.0 (Samsung R&D Institute Poland): do not redistribute"

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """Where rows come from; none where the dialogues are made."""
        return () if self.source == "synthetic" else (SOURCE,)

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` examples, in the order of the file or as the seed makes them."""
        rows: Sequence[Mapping[str, Any]]
        if self.source == "synthetic":
            size = self.paper_sizes[split] if limit is None else limit
            rows = [made_dialogue(split, seed, at) for at in range(size)]
        else:
            rows = SOURCE.rows(split)[:limit]
        return [_example(f"samsum-{split}-{at}", row) for at, row in enumerate(rows)]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The digest of the file; generator and seed of made dialogues."""
        formatting = {"format": FORMAT, "prompt": PROMPT}
        if self.source == "synthetic":
            generator = {"generator": GENERATOR, "split": split, "seed": seed}
            return {"task": self.name, "source": self.source, **generator, **formatting}
        return {**SOURCE.identity(split), **formatting}

    def parse(self, completion: str) -> Answer | None:
        """None: a summary is no number, even where it holds some."""
        return None

    def annotate(self, completion: str, target: str) -> Mapping[str, float]:
        """ROUGE of the first paragraph, from 0 to 1: `rouge1`, `rouge2` and `rougeL`."""
        return rouge(plain_text(completion).partition(UNTIL)[0], target)

    def metrics(self) -> Sequence[Metric]:
        """ROUGE-L selects; ROUGE-1 and ROUGE-2 stand beside it, in percent as in the paper."""
        return METRICS


def _example(uid: str, row: Mapping[str, Any]) -> Example:
    summary = " ".join(str(row["summary"]).split())

    # An empty dialogue is kept: n is the paper's.
    if "dialogue" not in row or not summary:
        raise UserError(
            f"The row {uid} has no dialogue or no summary: copy the file again."
        )

    # The files have \r\n or \n, of which a tokenizer makes different ids.
    dialogue = "\n".join(str(row["dialogue"] or "").strip().splitlines())
    return Example(
        uid=uid,
        prompt=PROMPT.format(dialogue=dialogue),
        target=f" {summary}",
        answer=None,
        attributes={"turns": len(dialogue.splitlines())},
    )


def made_dialogue(split: str, seed: int, at: int) -> Mapping[str, str]:
    """The dialogue number `at` of a split, with its summary: SAMSum's format, and easier. A
    dialogue belongs to the split that its hash says, whatever the seed: 8 : 1 : 1."""
    attempts = count()
    while True:
        rng = random.Random(f"{GENERATOR} {split} {seed} {at} {next(attempts)}")
        row = _draw_dialogue(rng, with_number=at % 3 == 0)
        tenth = zlib.crc32(row["dialogue"].encode()) % 10
        if split == {8: "validation", 9: "test"}.get(tenth, "train"):
            return row


def _draw_dialogue(rng: random.Random, *, with_number: bool) -> Mapping[str, str]:
    # Every draw comes in this order, whatever was drawn before it: the order is the data.
    asker, bringer = rng.sample(_NAMES, 2)
    place = rng.choice(_PLACES)
    if with_number:
        low, high = rng.sample(range(2, 60), 2)
        kind = rng.choice(_COUNTED)
        rng.choice(_COUNTED)  # GENERATOR 2 draws a second kind, and does not use it
        first_thing, second_thing = f"{low} {kind}", f"{high} {kind}"
        first_time, second_time = (f"at {hour}" for hour in rng.sample(range(1, 13), 2))
    else:
        first_thing = second_thing = rng.choice(_THINGS)
        first_time, second_time = rng.sample(_DAYS, 2)

    thing, when = first_thing, first_time
    talk = []
    if rng.random() < 0.5:
        talk += [f"Hi {bringer}!", f"Hello {asker}."]
    if rng.random() < 0.4:
        talk += rng.choice(_SMALL_TALK)
    requests = (
        f"Will you bring {thing}?",
        f"Could you bring {thing}?",
        f"I need {thing}.",
    )
    talk += [
        rng.choice(requests),
        rng.choice(("Yes. When?", "Sure! When?", "Of course. When?")),
    ]
    talk += [f"{when[0].upper()}{when[1:]}, {place}."]

    if rng.random() < 0.5:
        when = second_time
        talk += [f"I have no time {first_time}.", f"Then {when}?"]
    if first_thing != second_thing and rng.random() < 0.5:
        thing = second_thing
        agreed = rng.choice(("Good.", "That is fine."))
        talk += [agreed, f"And better {thing}, not {first_thing}."]
    talk += [rng.choice(("OK, see you.", "All right.", "I will be there."))]
    if rng.random() < 0.5:
        talk += ["Great, thank you."]

    speakers = cycle((asker, bringer))
    lines = [
        f"{speaker}: {text}" for speaker, text in zip(speakers, talk, strict=False)
    ]
    summary = rng.choice(_SUMMARIES)
    summary = summary.format(
        one=asker, two=bringer, thing=thing, when=when, place=place
    )
    return {"dialogue": "\n".join(lines), "summary": summary}
