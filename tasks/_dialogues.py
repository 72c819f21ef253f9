"""Messenger dialogues made here, each with its summary: SAMSum's format without its text.

For a look at the whole path where the corpus may not be had: they are easier than real ones.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from itertools import count

GENERATOR = 2
"""Version of the dialogues."""
_SHARES = {"train": range(8), "validation": range(8, 9), "test": range(9, 10)}
"""A dialogue belongs to the split whose tenths hold its hash, whatever the seed."""
_NAMES = (
    "Ada", "Bruno", "Clara", "Dora", "Emil", "Fynn", "Greta", "Hana", "Ivo", "Jana", "Karl", "Lena",
    "Mia", "Noah", "Olga", "Paul", "Rosa", "Simon", "Tina", "Viktor",
)  # fmt: skip
_THINGS = ("the tent", "a cake", "the keys", "the bike", "the scarf", "an umbrella", "the camera")
_COUNTED = ("chairs", "cups", "plates", "tickets", "bottles", "candles", "boxes", "balloons")
_PLACES = (
    "at the station", "at school", "in the park", "at the library", "at home", "at the museum",
    "at the harbor", "in the garden",
)  # fmt: skip
_DAYS = ("tonight", "tomorrow", "on Monday", "on Tuesday", "on Friday", "on Sunday", "next week")
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


def made_dialogue(split: str, seed: int, at: int) -> Mapping[str, str]:
    """The dialogue number `at` of a split, with its summary; no dialogue is in two splits."""
    drawn = (
        _drawn(random.Random(f"{GENERATOR} {split} {seed} {at} {attempt}"), at % 3 == 0)
        for attempt in count()
    )
    return next(
        made for made in drawn if zlib.crc32(made["dialogue"].encode()) % 10 in _SHARES[split]
    )


def _drawn(rng: random.Random, with_number: bool) -> Mapping[str, str]:
    one, two = rng.sample(_NAMES, 2)
    place = rng.choice(_PLACES)
    if with_number:
        first, last = (f"{n} {rng.choice(_COUNTED)}" for n in rng.sample(range(2, 60), 2))
        last = f"{last.split()[0]} {first.split()[1]}"
        early, late = (f"at {hour}" for hour in rng.sample(range(1, 13), 2))
    else:
        first = last = rng.choice(_THINGS)
        early, late = rng.sample(_DAYS, 2)
    thing, when = first, early
    talk = [f"Hi {two}!", f"Hello {one}."] if rng.random() < 0.5 else []
    talk += rng.choice(_SMALL_TALK) if rng.random() < 0.4 else []
    asked = (f"Will you bring {thing}?", f"Could you bring {thing}?", f"I need {thing}.")
    talk += [rng.choice(asked), rng.choice(("Yes. When?", "Sure! When?", "Of course. When?"))]
    talk += [f"{when[0].upper()}{when[1:]}, {place}."]
    if rng.random() < 0.5:
        when = late
        talk += [f"I have no time {early}.", f"Then {when}?"]
    if first != last and rng.random() < 0.5:
        thing = last
        talk += [rng.choice(("Good.", "That is fine.")), f"And better {thing}, not {first}."]
    talk += [rng.choice(("OK, see you.", "All right.", "I will be there."))]
    talk += ["Great, thank you."] if rng.random() < 0.5 else []
    speakers = [one, two] * len(talk)
    said = rng.choice(_SUMMARIES).format(one=one, two=two, thing=thing, when=when, place=place)
    return {
        "dialogue": "\n".join(f"{who}: {text}" for who, text in zip(speakers, talk, strict=False)),
        "summary": said,
    }
