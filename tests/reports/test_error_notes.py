import pandas as pd
from smmd_bench.reports._error_panels import in_brief, limit_note, subset_note
from smmd_bench.reports._errors import CommonErrors, Pair


def errors_of(*losses: str, model: str = "builtin/tiny", n: int = 7) -> list[CommonErrors]:
    frame = pd.DataFrame(index=range(2 * n))
    return [
        CommonErrors(Pair(model, "gsm8k", "ce", loss, (0,), ("a", "b")), frame, 10)
        for loss in losses
    ]


def test_what_is_not_drawn_is_named():
    few, many = errors_of("ntl", "smmd"), errors_of(*"abcde", "smmd")
    assert limit_note(few, 1) == ""
    assert limit_note([*few, *errors_of("smmd", model="m/other")], 1) == (
        "Drawn are 1 of 2 combinations of model and task; the CSV of the figure has all."
    )
    assert limit_note(many, 1) == (
        "Drawn are at most 5 losses over the reference (A, B, C, D, SMMD); the CSV of the figure "
        "has all."
    )


def test_few_counts_are_listed_and_of_many_the_smallest_and_the_largest_share():
    counts = [("NTL", 1390, 1500), ("SMMD", 1500, 1500)]
    assert in_brief(counts) == "NTL 1,390 of 1,500; SMMD 1,500 of 1,500"
    counts += [("GCE", 549, 1000), ("NTIL", 7, 10), ("A", 6, 10)]
    assert in_brief(counts) == "from 54.9 % with GCE to 100.0 % with SMMD"
    assert in_brief([("A", at, 1000 * at) for at in range(1, 7)]) == "0.1 % of each"


def test_the_sizes_of_the_subsets_are_named_with_their_models_where_there_are_several():
    one = errors_of("smmd", model="m/one")
    assert "on the seeds that both have. Its share: SMMD 7 of 10." in subset_note(one)
    two = [*one, *errors_of("smmd", model="m/two")]
    assert "Its share: SMMD (one, gsm8k) 7 of 10; SMMD (two, gsm8k) 7 of 10." in subset_note(two)
