"""Both engines, on real checkpoints: the same tokens, the same probabilities, no silent mistake."""

import os
import shutil
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine
from smmd_bench.plugins.engines.vllm import VllmEngine

from smmd_bench.contracts import Checkpoint, EngineSession, EngineSettings
from smmd_bench.errors import UserError
from smmd_bench.models.loading import load_model
from smmd_bench.training.canary import CanaryTexts, make_canary
from smmd_bench.training.canary_texts import BLOCK, CACHED

pytestmark = pytest.mark.engine

SETTINGS = EngineSettings(max_model_length=256, adapters=True, memory_gb=0.125)
THERE_AND_BACK = (
    "base", "lora1", "full1", "lora2", "base", "full2", "full1", "lora1", "lora2", "base",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A session of each engine on one base."""

    vllm: EngineSession
    transformers: EngineSession
    checkpoints: dict[str, Checkpoint]
    prompts: list[list[int]]
    numbers: list[int]
    end: int


@pytest.fixture(scope="class", params=["digit", "triple"])
def pair(request, tiny_checkpoints):
    tiny = tiny_checkpoints(request.param)
    texts = [f"{a}+{b}=" for a in (*range(10), 12, 345) for b in range(0, 10, 2)]
    texts += ["1+2=3 " * 25 + text for text in texts[:3]]  # more than a block of the prefix cache
    largest = 10 if request.param == "digit" else 1000
    with (
        VllmEngine().open(tiny.base, SETTINGS) as vllm,
        TransformersEngine().open(tiny.base, SETTINGS) as transformers,
    ):
        yield Pair(
            vllm,
            transformers,
            dict(tiny.checkpoints),
            tiny.tokenizer(texts)["input_ids"],
            tiny.tokenizer.convert_tokens_to_ids([str(n) for n in range(largest)]),
            tiny.tokenizer.eos_token_id,
        )


class TestOneSession:
    def test_greedy_completions_are_identical_through_every_swap(self, pair):
        seen = {}
        for name in THERE_AND_BACK:
            checkpoint = pair.checkpoints[name]
            ours = pair.vllm.generate(pair.prompts, checkpoint, max_new_tokens=6)
            theirs = pair.transformers.generate(pair.prompts, checkpoint, max_new_tokens=6)
            assert ours == theirs, name
            assert seen.setdefault(name, ours) == ours, name
        assert len({tuple(completions) for completions in seen.values()}) == len(seen)

    @pytest.mark.parametrize("name", ["base", "lora1", "full2"])
    def test_next_token_probabilities_agree(self, pair, name):
        checkpoint = pair.checkpoints[name]
        ours = pair.vllm.next_token_probabilities(pair.prompts, pair.numbers, checkpoint)
        theirs = pair.transformers.next_token_probabilities(pair.prompts, pair.numbers, checkpoint)
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
        np.testing.assert_allclose(ours.sum(axis=1), 1.0)

    def test_probabilities_come_in_the_order_of_the_token_ids(self, pair):
        base = pair.checkpoints["base"]
        forward = pair.vllm.next_token_probabilities(pair.prompts, pair.numbers, base)
        back = pair.vllm.next_token_probabilities(pair.prompts, pair.numbers[::-1], base)
        np.testing.assert_allclose(forward, back[:, ::-1], atol=1e-6)

    @pytest.mark.parametrize("name", ["base", "lora2", "full1"])
    def test_log_probabilities_agree(self, pair, name):
        sequences = [prompt + pair.numbers[:n] for n, prompt in enumerate(pair.prompts[:9])]
        sequences.append(pair.prompts[0][:1])
        ours = pair.vllm.log_probabilities(sequences, pair.checkpoints[name])
        theirs = pair.transformers.log_probabilities(sequences, pair.checkpoints[name])
        assert [len(row) for row in ours] == [len(sequence) - 1 for sequence in sequences]
        for row, other in zip(ours, theirs, strict=True):
            assert row == pytest.approx(other, abs=1e-3)

    @pytest.mark.parametrize("name", ["base", "lora1", "full1"])
    @pytest.mark.parametrize("engine", ["vllm", "transformers"])
    def test_the_canary_of_another_checkpoint_raises(self, pair, engine, name):
        session: EngineSession = getattr(pair, engine)
        right = pair.checkpoints[name]
        wrong = replace(right, canary=pair.checkpoints["full2"].canary)
        with pytest.raises(RuntimeError, match=rf"checkpoint '{name}'.*off by up to \d"):
            session.generate(pair.prompts, wrong, max_new_tokens=2)
        session.generate(pair.prompts, right, max_new_tokens=2)

    def test_a_stale_prefix_cache_raises(self, pair):
        """The keys of the other weights stand in the cache for the first block of the canary."""
        session: Any = pair.vllm
        ids = tuple((pair.prompts[-1] * 9)[:CACHED])
        texts = CanaryTexts((ids,), (CACHED - BLOCK,))
        before, right = (
            replace(c, canary=make_canary(load_model(c.path, "float32"), texts))
            for c in (pair.checkpoints["full1"], pair.checkpoints["full2"])
        )
        session.generate(pair.prompts, before, max_new_tokens=1)
        session._llm.reset_prefix_cache = lambda: True
        with pytest.raises(RuntimeError, match="does not run the weights of checkpoint 'full2'"):
            session.generate(pair.prompts, right, max_new_tokens=1)
        del session._llm.reset_prefix_cache
        session._llm.reset_prefix_cache()
        session.generate(pair.prompts, right, max_new_tokens=1)

    @pytest.mark.parametrize("engine", ["vllm", "transformers"])
    def test_a_prompt_that_leaves_no_room_is_refused(self, pair, engine):
        session: EngineSession = getattr(pair, engine)
        base, token = pair.checkpoints["base"], pair.numbers[0]
        fits = [[token] * 248]
        assert len(session.generate(fits, base, max_new_tokens=8)) == 1
        with pytest.raises(UserError, match=r"Prompt 1 has 249 tokens.*256.*max_model_length"):
            session.generate([*fits, [token] * 249], base, max_new_tokens=8)

    @pytest.mark.parametrize("engine", ["vllm", "transformers"])
    def test_the_finish_reason_says_why(self, pair, engine):
        session: EngineSession = getattr(pair, engine)
        base = pair.checkpoints["base"]
        for completion in session.generate(pair.prompts, base, max_new_tokens=1):
            assert completion.finish_reason == "length"
            assert len(completion.token_ids) == 1
        whole = session.generate(pair.prompts, base, max_new_tokens=30)
        stopped = [completion for completion in whole if completion.finish_reason == "stop"]
        assert stopped
        for completion in stopped:
            assert completion.token_ids.index(pair.end) == len(completion.token_ids) - 1
            assert "<" not in completion.text

    @pytest.mark.parametrize("engine", ["vllm", "transformers"])
    def test_progress_counts_up_to_all(self, pair, engine):
        session: EngineSession = getattr(pair, engine)
        counts: list[tuple[int, int]] = []
        session.generate(
            pair.prompts,
            pair.checkpoints["base"],
            max_new_tokens=6,
            progress=lambda what, done, total: counts.append((done, total)),
        )
        assert counts == sorted(counts)
        assert counts[-1] == (len(pair.prompts), len(pair.prompts))

    def test_requests_of_an_interrupted_call_never_join_the_next_one(self, pair):
        base = pair.checkpoints["base"]
        expected = pair.vllm.generate(pair.prompts, base, max_new_tokens=6)

        def interrupt(what, done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pair.vllm.generate(
                pair.prompts, pair.checkpoints["lora1"], max_new_tokens=6, progress=interrupt
            )
        assert pair.vllm.generate(pair.prompts, base, max_new_tokens=6) == expected


def test_an_engine_leaves_the_process_as_it_was_and_opens_again(tiny_checkpoints):
    import torch

    tiny = tiny_checkpoints("digit")
    settings = replace(SETTINGS, adapters=False)
    before = dict(os.environ), torch.set_num_threads
    prompts = tiny.tokenizer(["3+4=", "40+2="])["input_ids"]
    completions = []
    for name in ("base", "full1"):
        with VllmEngine().open(tiny.base, settings) as session:
            completions.append(session.generate(prompts, tiny.checkpoints[name], max_new_tokens=4))
        assert (dict(os.environ), torch.set_num_threads) == before
        with pytest.raises(RuntimeError, match="closed"):
            session.generate(prompts, tiny.checkpoints["base"], max_new_tokens=4)
    assert completions[0] != completions[1]


def test_after_a_failed_swap_the_session_answers_nothing_more(tiny_checkpoints, tmp_path):
    tiny = tiny_checkpoints("digit")
    prompts = tiny.tokenizer(["3+4="])["input_ids"]
    broken = Checkpoint("broken", "full", tmp_path / "broken")
    shutil.copytree(tiny.base, broken.path)
    (broken.path / "model.safetensors").write_bytes(b"no weights")
    missing = Checkpoint("missing", "full", tmp_path / "missing")
    with VllmEngine().open(tiny.base, replace(SETTINGS, adapters=False)) as session:
        with pytest.raises(ValueError, match="adapters=True"):
            session.generate(prompts, tiny.checkpoints["lora1"], max_new_tokens=2)
        with pytest.raises(UserError, match=r"'missing'.*has no \*\.safetensors"):
            session.generate(prompts, missing, max_new_tokens=2)
        session.generate(prompts, tiny.checkpoints["base"], max_new_tokens=2)
        with pytest.raises(Exception, match="header"):
            session.generate(prompts, broken, max_new_tokens=2)
        with pytest.raises(RuntimeError, match=r"'broken'.*half-way"):
            session.generate(prompts, tiny.checkpoints["base"], max_new_tokens=2)


@pytest.mark.parametrize("engine", [VllmEngine(), TransformersEngine()])
def test_the_identity_names_the_library_and_its_version(engine):
    identity = engine.identity()
    assert identity["name"] == engine.name
    assert identity["version"] == 1
    assert any(character.isdigit() for character in identity["library"])
