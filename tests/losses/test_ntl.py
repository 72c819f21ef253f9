"""NTL against its formula (app. eq:ntl_was_1d), optimal transport and the authors' package."""

import pytest
import torch
from scipy.stats import wasserstein_distance
from transformers import AutoTokenizer

from smmd_bench.contracts import NumericVocabulary
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.objective.objective import numeric_objective
from smmd_bench.plugin_system.registry import load_loss

from ..conftest import TOKENIZERS
from .cases import DIGITS, UNEVEN, bind, predictions, random_targets

VARIANTS = {  # as the authors' package has them
    "ntl": ("NTLoss", {"reweigh": False}),
    "ntl[reweigh=true]": ("NTLoss", {}),
    "ntl[squash=4]": ("NTLoss", {"reweigh": False, "squash_factor": 4}),
    "ntl[reweigh=true,squash=4]": ("NTLoss", {"squash_factor": 4}),
    "ntl[kind=mse]": ("NTLossDotProduct", {"reweigh": False}),
    "ntl[kind=mse,reweigh=true]": ("NTLossDotProduct", {}),
}


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_is_the_literal_sum_and_the_wasserstein_distance(values):
    targets = random_targets(values)
    total, units = bind(values, "ntl")(targets)
    literal = [
        sum(one * abs(v - values[y]) for one, v in zip(p, values, strict=True))
        for p, y in predictions(targets)
    ]
    transport = [wasserstein_distance(values, [values[y]], p) for p, y in predictions(targets)]
    assert total.item() == pytest.approx(sum(literal), rel=1e-12)
    assert total.item() == pytest.approx(sum(transport), rel=1e-12)
    assert units == 7


@pytest.mark.parametrize(("name", "digit_level"), [("digit", True), ("triple", False)])
@pytest.mark.parametrize("spec", VARIANTS)
def test_agrees_with_the_authors_package(name, digit_level, spec):
    import ntloss

    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / name)
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
    torch.testing.assert_close(out.auxiliary, theirs(logits, labels), rtol=1e-5, atol=1e-6)
