"""Messenger dialogues made here, each with its summary: SAMSum's format without its text.

For a look at the whole path where the corpus may not be had: they are far easier than real ones.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from itertools import count

GENERATOR = 1
"""Version of the dialogues."""
_SHARES = {"train": range(8), "validation": range(8, 9), "test": range(9, 10)}
"""A dialogue belongs to the split whose tenths hold its hash, whatever the seed."""
_NAMES = ("Ada", "Bruno", "Clara", "Dora", "Emil", "Fynn", "Greta", "Hana", "Ivo", "Jana")
_THINGS = ("the tent", "a cake", "the keys", "some chairs", "a bike", "the scarf", "an umbrella")
_PLACES = ("at the station", "at school", "in the park", "at the library", "at home")
_DAYS = ("tonight", "tomorrow", "on Monday", "on Friday", "next week")


def made_dialogue(split: str, seed: int, at: int) -> Mapping[str, str]:
    """The dialogue number `at` of a split: `dialogue`, lines of "name: text", and `summary`.

    One in three holds a number, in both. The same arguments give the same text everywhere, and no
    dialogue is in two splits.
    """
    drawn = (
        _drawn(random.Random(f"{GENERATOR} {split} {seed} {at} {attempt}"), at % 3 == 0)
        for attempt in count()
    )
    return next(
        made for made in drawn if zlib.crc32(made["dialogue"].encode()) % 10 in _SHARES[split]
    )


def _drawn(rng: random.Random, with_number: bool) -> Mapping[str, str]:
    one, two = rng.sample(_NAMES, 2)
    thing, place, day = rng.choice(_THINGS), rng.choice(_PLACES), rng.choice(_DAYS)
    when = f"at {rng.randint(1, 12)}" if with_number else day
    asked = (f"Will you bring {thing}?", f"Could you bring {thing}?", f"Can you bring {thing}?")
    talk = [rng.choice(asked), rng.choice(("Yes.", "Sure!", "Of course.")), "When?"]
    talk += [f"{when[0].upper()}{when[1:]}, {place}."]
    if rng.random() < 0.5:
        talk += ["Great, thank you."]
    if rng.random() < 0.5:
        talk = [f"Hi {two}!", f"Hello {one}.", *talk]
    speakers = [one, two] * len(talk)
    return {
        "dialogue": "\n".join(f"{who}: {said}" for who, said in zip(speakers, talk, strict=False)),
        "summary": f"{two} will bring {thing} for {one} {when} {place}.",
    }
