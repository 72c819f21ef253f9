"""Both engines, on real checkpoints: the same tokens, the same probabilities, no silent mistake."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from peft import PeftModel
from PIL import Image
from smmd_bench.plugins.engines import _vllm_session
from smmd_bench.plugins.engines.vllm import CPU_HEADS, VllmEngine

from smmd_bench.encoding.data import expand
from smmd_bench.encoding.images import read_image
from smmd_bench.encoding.prompts import expanded_lengths
from smmd_bench.models.loading import load_model
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import BLOCK, CACHED, CanaryTexts
from tests.conftest import expect_user_error

from ..tiny_vlms import ARCHITECTURES, draw_picture
from .cases import build_variants, open_sessions, text_case, vision_case

pytestmark = pytest.mark.engine
TEXT = ("digit", "triple")
VISION = [  # vLLM does not run the last
    pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES
]


@pytest.fixture(scope="module")
def case(request, tiny_checkpoints, tmp_path_factory):
    """The sessions of a base, opened once for all tests of it."""
    name = request.param
    if name in TEXT:
        tiny = tiny_checkpoints(name)
        with open_sessions(tiny.base) as sessions:
            yield text_case(name, tiny, sessions)
    else:
        root = tmp_path_factory.mktemp(name)
        checkpoints = build_variants(name, root)
        with open_sessions(root / "base") as sessions:
            yield vision_case(name, root, checkpoints, sessions)


of_all = pytest.mark.parametrize(
    "case", [*TEXT, *VISION], indirect=True, scope="module"
)
of_text = pytest.mark.parametrize("case", TEXT[:1], indirect=True, scope="module")
of_vision = pytest.mark.parametrize("case", VISION, indirect=True, scope="module")


@of_all
def test_greedy_completions_are_those_of_plain_forward_passes_through_every_swap(case):
    by_name = {}
    for name in case.there_and_back:
        for engine, session in case.sessions.items():
            completions = case.decode(session, case.checkpoints[name], 6)
            assert by_name.setdefault(name, completions) == completions, (name, engine)

    assert len(set(map(tuple, by_name.values()))) == len(by_name)

    model = load_model(case.base, "float32")
    for row, completion in enumerate(by_name["base"][:12]):
        for at, token in enumerate(completion.token_ids):
            assert (
                int(case.logits(model, row, completion.token_ids[:at]).argmax())
                == token
            )
            if case.processor is not None and token == case.processor.image_token_id:
                break


@of_all
@pytest.mark.parametrize("kind", ["base", "lora", "full"])
def test_probabilities_are_the_softmax_over_the_chosen_tokens(case, kind):
    checkpoint = next(c for c in case.checkpoints.values() if c.kind == kind)
    folder = case.base if kind == "lora" else checkpoint.path
    model = load_model(folder, "float32")
    if kind == "lora":
        model = PeftModel.from_pretrained(model, checkpoint.path).eval()
    numbers = case.numbers
    logits = case.first_logits(model)[:, numbers]
    expected = logits.double().softmax(-1)
    reversed_case = replace(case, numbers=numbers[::-1])

    for session in case.sessions.values():
        probabilities = case.probe(session, checkpoint)
        np.testing.assert_allclose(probabilities, expected, atol=1e-4)
        reversed_probabilities = reversed_case.probe(session, checkpoint)
        backwards = np.fliplr(reversed_probabilities)
        np.testing.assert_allclose(probabilities, backwards, atol=1e-6)


@pytest.mark.parametrize("case", TEXT[1:], indirect=True, scope="module")
@pytest.mark.parametrize("limit", [1024, 100])
@pytest.mark.parametrize("count", [10, 200, 1000])
def test_probabilities_of_more_tokens_than_vllm_takes_are_asked_for_in_parts(
    case, count, limit, monkeypatch
):
    monkeypatch.setattr(_vllm_session, "MOST_ALLOWED_TOKEN_IDS", limit)
    counts, prompts = [], case.prompts[:5]
    by_transformers, by_vllm = (
        case.sessions[name].next_token_probabilities(
            prompts,
            case.numbers[:count],
            case.checkpoints["lora1"],
            progress=lambda what, done, total: counts.append((done, total)),
        )
        for name in ("transformers", "vllm")
    )
    np.testing.assert_allclose(by_vllm, by_transformers, atol=1e-5)

    assert counts[-1] == (5, 5)
    assert max(done for done, _ in counts) == 5


@of_all
def test_the_likeliest_tokens_are_those_of_plain_forward_passes(case):
    checkpoint = next(c for c in case.checkpoints.values() if c.kind == "full")
    model = load_model(checkpoint.path, "float32")
    logits = case.first_logits(model)
    log_p = logits.double().log_softmax(-1)

    for session in case.sessions.values():
        likeliest = session.likeliest_tokens(
            case.prompts, checkpoint, most=10, images=case.images
        )
        for row, tokens in zip(log_p, likeliest, strict=True):
            ids, values = zip(*tokens.items(), strict=True)
            assert len(ids) == 10
            largest = row.topk(10).values.flip(0)
            np.testing.assert_allclose(sorted(values), largest, atol=1e-3)
            np.testing.assert_allclose(values, row[[*ids]], atol=1e-3)


@of_all
def test_the_canary_of_another_checkpoint_raises(case):
    """Of the tower's, the language model is the base's: only the canary's picture can tell."""
    canaries = {
        name: checkpoint.canary for name, checkpoint in case.checkpoints.items()
    }
    *names, last = canaries
    if case.images is not None:
        assert (
            canaries["base"].log_probabilities[:-1]
            == canaries[last].log_probabilities[:-1]
        )
    wrong_canaries = dict.fromkeys(names, last) | {last: "base"}

    for session in case.sessions.values():
        for name, wrong in wrong_canaries.items():
            checkpoint = case.checkpoints[name]
            sabotaged = replace(checkpoint, canary=canaries[wrong])
            with pytest.raises(
                RuntimeError, match=rf"checkpoint '{name}'.*off by up to \d"
            ):
                case.decode(session, sabotaged, 2)
            case.decode(session, checkpoint, 1)


@of_all
def test_a_prompt_that_leaves_no_room_is_refused(case):
    length = 248
    prompts = [case.tokenizer("1+2=")["input_ids"], [case.numbers[0]] * length]
    images = None
    if case.images is not None:  # pictures count in full
        prompts[1], images = case.prompts[4], [[], case.images[4]]
        (length,) = expanded_lengths(case.processor, prompts[1:], images[1:])
        assert (
            expand(case.processor, prompts[1], images[1])["input_ids"].shape[1]
            == length
        )

    two = replace(case, prompts=prompts, images=images)
    base = case.checkpoints["base"]
    for session in case.sessions.values():
        assert len(two.decode(session, base, 256 - length)) == 2
        message = rf"Prompt 1 has {length} tokens.*256.*max_model_length"
        with expect_user_error(message):
            two.decode(session, base, 257 - length)


@of_text
def test_the_model_runner_is_the_one_that_is_asked_for(case):
    config = case.sessions["vllm"]._llm.llm_engine.vllm_config
    assert config.use_v2_model_runner is (
        os.environ.get("VLLM_USE_V2_MODEL_RUNNER") == "1"
    )
    assert config.cache_config.block_size == 32


@of_text
def test_a_stale_prefix_cache_raises(case):
    """The keys of the other weights stand in the cache for the first blocks of the canary."""
    session = case.sessions["vllm"]
    ids = tuple((case.prompts[-1] * 9)[:CACHED])
    texts = CanaryTexts((ids,), (CACHED - BLOCK,))
    first, second = (
        replace(c, canary=make_canary(load_model(c.path, "float32"), texts))
        for c in (case.checkpoints["full1"], case.checkpoints["full2"])
    )
    case.decode(session, first, 1)
    session._llm.reset_prefix_cache = lambda: True
    with pytest.raises(
        RuntimeError, match="does not run the weights of checkpoint 'full2'"
    ):
        case.decode(session, second, 1)
    del session._llm.reset_prefix_cache
    session._llm.reset_prefix_cache()
    case.decode(session, second, 1)


@of_text
def test_the_finish_reason_says_why_and_progress_counts_up_to_all(case):
    base, end = case.checkpoints["base"], case.tokenizer.eos_token_id
    counts = []
    for session in case.sessions.values():
        for completion in case.decode(session, base, 1):
            assert completion.finish_reason == "length"
            assert len(completion.token_ids) == 1

        counts.clear()
        completions = case.decode(
            session, base, 30, progress=lambda what, *of: counts.append(of)
        )
        stopped = [
            completion
            for completion in completions
            if completion.finish_reason == "stop"
        ]
        assert stopped
        for completion in stopped:
            assert completion.token_ids.index(end) == len(completion.token_ids) - 1
            assert "<" not in completion.text
        assert counts == sorted(counts)
        assert counts[-1] == (len(case.prompts), len(case.prompts))


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({"hidden_size": 64, "num_attention_heads": 4, "head_dim": 32}, False),
        ({"n_embd": 48, "n_head": 2}, True),
        ({"text_config": {"hidden_size": 64, "num_attention_heads": 8}}, True),
        ({}, False),
    ],
)
def test_heads_that_vllm_has_not_on_a_cpu_are_known_before_training(
    tmp_path, config, refused
):
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    assert list(CPU_HEADS) == CPUAttentionBackend.get_supported_head_sizes()
    (tmp_path / "config.json").write_text(json.dumps(config))
    reason = VllmEngine().refuses(tmp_path)
    assert (reason is not None and "attention on a CPU" in reason) is refused


@of_vision
def test_vllm_says_why_it_refuses_mllama(case):
    reason = VllmEngine().refuses(case.base)
    assert ("vllm" in case.sessions) == (reason is None) == (case.name != "mllama")
    assert reason is None or "0.10.2" in reason


@of_vision
def test_an_answer_is_of_the_picture_as_it_is_now(case, tmp_path):
    """No engine may know an image by its name or its size."""
    base = case.checkpoints["base"]
    Image.new("RGB", (84, 84), "white").save(tmp_path / "blank.png")
    blank = replace(case, images=[[tmp_path / "blank.png"]] * len(case.prompts))
    same_name = replace(
        case, prompts=case.prompts[:1], images=[[tmp_path / "same.png"]]
    )

    for session in case.sessions.values():
        answers = case.decode(session, base, 5)
        answers_of_blank = blank.decode(session, base, 5)
        assert all(a != b for a, b in zip(answers, answers_of_blank, strict=True))

        probabilities = []
        for seed in (5, 6):
            draw_picture(tmp_path / "same.png", seed)
            probabilities.append(same_name.probe(session, base))
        assert np.abs(np.subtract(*probabilities)).max() > 1e-3


@of_vision
def test_rows_with_and_without_pictures_go_together(case):
    base = case.checkpoints["base"]
    texts = case.tokenizer(["1+2=", "Say 3:"])["input_ids"]
    of_texts = replace(case, prompts=texts, images=None)
    first, last = texts
    prompts = [first, *case.prompts, last]
    images = [[], *case.images, []]
    mixed = replace(case, prompts=prompts, images=images)

    for session in case.sessions.values():
        of_first, of_last = of_texts.decode(session, base, 4)
        of_pictures = case.decode(session, base, 4)
        together = mixed.decode(session, base, 4)
        assert together == [of_first, *of_pictures, of_last]


@pytest.mark.parametrize("case", VISION[:-1], indirect=True, scope="module")
def test_vllm_puts_the_tokens_of_our_own_processor_in_place_of_a_picture(case):
    from vllm import SamplingParams

    greedy = SamplingParams(temperature=0.0, max_tokens=1)
    for prompt, files in zip(case.prompts, case.images, strict=True):
        pictures = {"image": [read_image(file) for file in files]}
        request = {"prompt_token_ids": prompt, "multi_modal_data": pictures}
        (output,) = case.sessions["vllm"]._llm.generate(request, greedy, use_tqdm=False)
        expected = expand(case.processor, prompt, files)["input_ids"][0].tolist()
        assert output.prompt_token_ids == expected
