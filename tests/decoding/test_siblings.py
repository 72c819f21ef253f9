"""Checkpoints of one session: rivals of one another, and which of them a canary cannot tell."""

from smmd_bench.contracts import Canary
from smmd_bench.decoding.siblings import decode_receipt, with_rivals

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


def test_the_receipt_names_a_few_of_many():
    rivals = tuple((f"epoch {k}", ((-1.0, -2.0),)) for k in range(6))
    said = decode_receipt(Canary(IDS, ((-1.0, -2.0),), rivals=rivals), "float32", "stamp")
    assert said["indistinguishable"] == [f"epoch {k}" for k in range(6)]
    assert said["address"] == "stamp"
    assert "from epoch 0, epoch 1, epoch 2, epoch 3 and 2 more" in said["notes"][0]
    apart = decode_receipt(Canary(IDS, ((-1.5, -2.0),), rivals=rivals), "float32", "stamp")
    assert (apart["indistinguishable"], apart["notes"]) == ([], [])
