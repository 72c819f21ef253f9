"""NTL against the authors' package."""

import pytest
import torch

from smmd_bench.contracts import NumericVocabulary
from smmd_bench.encoding.numbers import numeric_vocabulary

from .cases import load_tokenizer, require_agreement

VARIANTS = {  # as the authors' package has them
    "ntl": ("NTLoss", {"reweigh": False}),
    "ntl[reweigh=true]": ("NTLoss", {}),
    "ntl[squash=4]": ("NTLoss", {"reweigh": False, "squash_factor": 4}),
    "ntl[reweigh=true,squash=4]": ("NTLoss", {"squash_factor": 4}),
    "ntl[kind=mse]": ("NTLossDotProduct", {"reweigh": False}),
    "ntl[kind=mse,reweigh=true]": ("NTLossDotProduct", {}),
}


@pytest.mark.parametrize(("name", "digit_level"), [("digit", True), ("triple", False)])
@pytest.mark.parametrize("spec", VARIANTS)
def test_agrees_with_the_authors_package(name, digit_level, spec):
    import ntloss

    tokenizer = load_tokenizer(name)
    kind, options = VARIANTS[spec]
    authors_loss = getattr(ntloss, kind)(tokenizer, digit_level=digit_level, **options)

    # It reads '٣', '１' and '007' as numbers, too: take its own vocabulary for N > 10.
    vocabulary = numeric_vocabulary(tokenizer)
    if not digit_level:
        v = authors_loss.number_values[authors_loss.is_number_token].double()
        order = v.argsort(stable=True)
        ids = authors_loss.number_token_ids[order]
        vocabulary = NumericVocabulary(ids, v[order], "ntloss")

    torch.manual_seed(0)
    logits = torch.randn(2, 9, len(tokenizer))
    labels = torch.randint(0, len(tokenizer), (2, 9))
    labels[:, ::3] = vocabulary.token_ids[torch.randint(len(vocabulary), (2, 3))]
    labels[0, 1] = -100
    require_agreement(spec, vocabulary, logits, labels, authors_loss)
