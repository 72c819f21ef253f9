"""NTL against its formula (app. eq:ntl_was_1d), optimal transport and the authors' package."""

import pytest
import torch
from scipy.stats import wasserstein_distance
from transformers import AutoTokenizer

from smmd_bench.contracts import Loss, NumericVocabulary
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.errors import UserError
from smmd_bench.objective.objective import numeric_objective
from smmd_bench.plugin_system.parameters import canonical
from smmd_bench.plugin_system.registry import load_loss

from .cases import (
    DIGITS,
    UNEVEN,
    check_gradient,
    perfect_targets,
    random_targets,
    softmax,
    value,
    vocabulary,
)


def literal(values, logits, target):
    total = 0.0
    for p, y in zip(softmax(logits), target.tolist(), strict=True):
        for i, v in enumerate(values):
            total += p[i] * abs(v - values[y])
    return total


def bind(values, spec="ntl"):
    return load_loss(spec).bind(vocabulary(values))


def test_defaults_are_the_papers():
    loss = load_loss("ntl")
    assert isinstance(loss, Loss)
    assert (loss.weight, loss.replaces_cross_entropy) == (2.0, False)
    assert canonical(load_loss("ntl[lambda=5]")) == "ntl[lambda=5]"


def test_a_negative_weight_is_the_users_error():
    with pytest.raises(UserError, match="lambda must be >= 0"):
        load_loss("ntl[lambda=-1]")


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_is_the_literal_sum(values):
    targets = random_targets(values)
    total, units = bind(values)(targets)
    assert total.item() == pytest.approx(literal(values, targets.logits, targets.target), rel=1e-12)
    assert units == 7


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_is_the_wasserstein_distance(values):
    targets = random_targets(values)
    distances = [
        wasserstein_distance(values, [values[y]], p)
        for p, y in zip(softmax(targets.logits), targets.target.tolist(), strict=True)
    ]
    assert value(bind(values), targets) == pytest.approx(sum(distances), rel=1e-12)


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_gradient_is_that_of_finite_differences(values):
    check_gradient(bind(values), values)


def test_is_zero_at_the_perfect_prediction():
    assert value(bind(DIGITS), perfect_targets(DIGITS)) == 0.0


def test_grows_with_the_distance_of_a_wrong_prediction():
    values = []
    for wrong in range(1, 10):
        logits = torch.zeros(1, 10, dtype=torch.float64)
        logits[0, wrong] = 5.0
        targets = random_targets(DIGITS, positions=1)
        targets.target.zero_()
        targets.logits.data.copy_(logits)
        values.append(value(bind(DIGITS), targets))
    assert values == sorted(values)


VARIANTS = {
    "ntl": ("NTLoss", {"reweigh": False}),
    "ntl[reweigh=true]": ("NTLoss", {}),
    "ntl[squash=4]": ("NTLoss", {"reweigh": False, "squash_factor": 4}),
    "ntl[reweigh=true,squash=4]": ("NTLoss", {"squash_factor": 4}),
    "ntl[kind=mse]": ("NTLossDotProduct", {"reweigh": False}),
    "ntl[kind=mse,reweigh=true]": ("NTLossDotProduct", {}),
}


@pytest.mark.parametrize("spec", VARIANTS)
def test_gradient_of_every_variant_is_that_of_finite_differences(spec):
    check_gradient(bind(DIGITS, spec), DIGITS)


@pytest.mark.parametrize("spec", ["ntl", "ntl[squash=4]", "ntl[kind=mse]"])
@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_every_variant_without_reweighing_is_zero_at_the_perfect_prediction(values, spec):
    assert value(bind(values, spec), perfect_targets(values)) == 0.0


def test_squash_makes_the_nearest_cost_one_and_the_farthest_k():
    bound = bind(DIGITS, "ntl[squash=4]")
    assert bound.distance(torch.arange(10.0)).tolist() == pytest.approx(
        [0.0, *(1 + d * 3 / 8 for d in range(9))]
    )


def test_squash_is_for_distances():
    with pytest.raises(UserError, match="kind=mse has none: leave one out"):
        load_loss("ntl[kind=mse,squash=4]")
    with pytest.raises(UserError, match="squash must be > 1"):
        load_loss("ntl[squash=1]")


@pytest.mark.parametrize(("name", "digit_level"), [("digit", True), ("triple", False)])
@pytest.mark.parametrize("spec", VARIANTS)
def test_agrees_with_the_authors_package(tokenizers, name, digit_level, spec):
    import ntloss

    tokenizer = AutoTokenizer.from_pretrained(tokenizers / name)
    kind, options = VARIANTS[spec]
    theirs = getattr(ntloss, kind)(tokenizer, digit_level=digit_level, **options)
    # It reads '٣', '１' and '007' as numbers, too: take its own vocabulary for N > 10.
    v = theirs.number_values[theirs.is_number_token].double()
    ours = numeric_vocabulary(tokenizer)
    if not digit_level:
        order = v.argsort(stable=True)
        ours = NumericVocabulary(theirs.number_token_ids[order], v[order], "ntloss")
    torch.manual_seed(0)
    logits = torch.randn(2, 9, len(tokenizer))
    labels = torch.randint(0, len(tokenizer), (2, 9))
    labels[:, ::3] = ours.token_ids[torch.randint(len(ours), (2, 3))]
    labels[0, 1] = -100
    out = numeric_objective(load_loss(spec).bind(ours), logits, labels)
    expected = theirs(logits, labels)
    torch.testing.assert_close(out.auxiliary, expected, rtol=1e-5, atol=1e-6)
