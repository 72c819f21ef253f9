"""The tokenizers of the built-in checkpoints keep the text of every task, also in vLLM."""

import pytest
from transformers import AutoTokenizer

from smmd_bench.models.cards import model_card
from smmd_bench.plugin_system.registry import load_task

TEXT = [
    "arithmetic", "arithmetic[level=easy,operations=1..2]", "gsm8k[source=synthetic]",
    "gsm8k[source=synthetic,calculator=keep]", "svamp[source=synthetic]",
    "samsum[source=synthetic]",
]  # fmt: skip
PICTURES = ["clock_time", "chartqa"]
CASES = [(f"builtin/tiny{name}", task) for name in ("", "-triple") for task in TEXT]
CASES += [("builtin/tiny-vl", task) for task in PICTURES]


@pytest.fixture(params=["transformers", "vllm"])
def tokenizer_of(request):
    if request.param == "transformers":
        return AutoTokenizer.from_pretrained
    return pytest.importorskip("vllm.tokenizers").get_tokenizer


@pytest.mark.engine
@pytest.mark.parametrize(("model", "task"), CASES, ids=str)
def test_the_text_of_a_task_comes_back(tokenizer_of, model, task):
    tokenizer = tokenizer_of(model_card(model).folder)
    allowed = 3 if model == "builtin/tiny-triple" else 1
    for example in load_task(task).examples("test", 0, 100):
        text = example.prompt + example.target
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == text
        for token in ids:
            spelled = tokenizer.decode([token])
            if any(map(str.isdigit, spelled)):
                assert spelled.isdecimal()
                assert len(spelled) <= allowed
