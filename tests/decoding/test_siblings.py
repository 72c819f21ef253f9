"""Checkpoints of one session: rivals of one another, and which of them a canary cannot tell."""

from smmd_bench.contracts import Canary
from smmd_bench.decoding.siblings import with_rivals

IDS = ((1, 2, 3),)


def test_rivals_score_the_same_tokens_and_are_no_one_elses():
    one, two = Canary(IDS, ((-1.0, -2.0),)), Canary(IDS, ((-1.5, -2.0),))
    last = Canary(IDS, ((-2.0,),))
    other = Canary(((1, 2, 4),), ((-1.0, -2.0),), rivals=(("base", ((-3.0, -3.0),)),))
    found = with_rivals({"one": one, "two": two, "last": last, "other": other})
    assert found["one"].rivals == (("two", two.log_probabilities),)
    assert found["two"].rivals == (("one", one.log_probabilities),)
    assert found["last"].rivals == ()
    assert found["other"] == other
