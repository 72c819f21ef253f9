"""NL-NTL against the authors' package, and what RAFT is of whole numbers and of longer ones."""

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.objective.supervised import count_units
from smmd_bench.plugin_system.registry import load_loss

from .cases import encoded, numbers, random_logits, require_agreement
from .test_decimals import TEXT, raft_terms

SHORT = ["123", "8", "9.05", "7", "3", "45", "0.625"]
NL_NTL = {  # as the authors' package has them
    "nl_ntl": {"reweigh": False},
    "nl_ntl[decimals=true]": {"reweigh": False, "float_level": True},
    "nl_ntl[reweigh=true]": {},
}


@pytest.mark.parametrize("spec", NL_NTL)
def test_nl_ntl_agrees_with_the_authors_package(spec):
    import ntloss

    tokenizer, vocabulary, labels = encoded("digit", TEXT)
    authors_loss = ntloss.NumberLevelLoss(tokenizer, **NL_NTL[spec])
    logits = random_logits(labels, len(tokenizer)).detach().float()
    require_agreement(spec, vocabulary, logits, labels, authors_loss)


def test_raft_of_a_digit_string_is_the_mean_over_all_strings():
    """The expected value under p(number), the digits being independent."""
    _, vocabulary, labels = encoded("digit", "407")
    logits = random_logits(labels, 200)
    of_digits = logits[0][:, vocabulary.token_ids]
    p = of_digits.softmax(-1)  # [3, 10]
    p_of_strings = torch.einsum("a,b,c->abc", *p).flatten()  # [1000]
    strings = torch.arange(1000, dtype=p.dtype)
    expected = (p_of_strings @ strings).item()

    loss = load_loss("raft").bind(vocabulary)
    out = numeric_objective(loss, logits, labels)
    error = (expected - 407) ** 2
    assert out.auxiliary.item() == pytest.approx(error, rel=1e-9)


def test_where_raft_replaces_cross_entropy_longer_numbers_keep_it():
    tokenizer, vocabulary, labels = encoded("digit", TEXT)
    logits = random_logits(labels, len(tokenizer))
    loss = load_loss("raft[add_cross_entropy=false]").bind(vocabulary)
    out = numeric_objective(loss, logits, labels)

    entropies = F.cross_entropy(logits[0], labels[0], reduction="none")
    terms = raft_terms(3)(tokenizer, vocabulary, logits[0], TEXT)
    units = len(SHORT)
    for spelled, tokens in numbers(tokenizer, TEXT):
        if spelled in SHORT:
            places = [at for at, *_ in tokens]
            entropies[places] = 0
        else:
            units += len(tokens)

    expected = entropies.sum() + sum(terms)
    torch.testing.assert_close(out.total, expected / labels.numel())
    assert out.units == count_units(loss, labels) == units
