"""Both engines on tiny checkpoints that read images: the same tokens, every swap seen."""

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine
from smmd_bench.plugins.engines.vllm import VllmEngine

from smmd_bench.contracts import EngineSession, EngineSettings
from smmd_bench.encoding.pictures import expand
from smmd_bench.encoding.prompts import expanded_lengths
from smmd_bench.errors import UserError
from smmd_bench.models.loading import load_model

from ..tiny_vlms import ARCHITECTURES, draw_picture
from .vlm_checkpoints import TinyVlm, build_variants

SETTINGS = EngineSettings(max_model_length=256, adapters=True, memory_gb=0.125)
THERE_AND_BACK = ("base", "lora", "tower", "base", "full", "lora", "tower", "full", "base")
pytestmark = [pytest.mark.engine, pytest.mark.slow]


@dataclass(frozen=True)
class Sessions:
    """A session of each engine that can run an architecture."""

    architecture: str
    tiny: TinyVlm
    each: dict[str, EngineSession]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def sessions(request, tmp_path_factory):
    tiny = build_variants(request.param, tmp_path_factory.mktemp(request.param))
    with ExitStack() as stack:
        each = {"transformers": stack.enter_context(TransformersEngine().open(tiny.base, SETTINGS))}
        if VllmEngine().refuses(tiny.base) is None:
            each["vllm"] = stack.enter_context(VllmEngine().open(tiny.base, SETTINGS))
        yield Sessions(request.param, tiny, each)


def test_vllm_says_why_it_refuses_mllama(sessions):
    reason = VllmEngine().refuses(sessions.tiny.base)
    assert ("vllm" in sessions.each) == (reason is None) == (sessions.architecture != "mllama")
    assert reason is None or "0.10.2" in reason


def test_completions_are_those_of_an_unpadded_forward_pass_a_row(sessions):
    """Greedy decoding the slow way; both engines give it through every swap."""
    import torch

    tiny, seen = sessions.tiny, {}
    for name in THERE_AND_BACK:
        checkpoint = tiny.checkpoints[name]
        for engine, session in sessions.each.items():
            found = session.generate(tiny.prompts, checkpoint, max_new_tokens=5, images=tiny.images)
            assert seen.setdefault(name, found) == found, (name, engine)
    assert len({tuple(completions) for completions in seen.values()}) == len(seen)
    model = load_model(tiny.base, "float32")
    for prompt, files, completion in zip(tiny.prompts, tiny.images, seen["base"], strict=True):
        ids = list(prompt)
        for token in completion.token_ids:
            with torch.no_grad():
                row = expand(tiny.processor, ids, files)
                logits = model(**row, use_cache=False).logits[0, -1]
            assert int(logits.argmax()) == token
            if token == tiny.processor.image_token_id:
                break
            ids.append(token)


def test_another_picture_gives_another_answer(sessions):
    tiny = sessions.tiny
    blank = [[tiny.blank]] * len(tiny.prompts)
    base = tiny.checkpoints["base"]
    for session in sessions.each.values():
        seen = session.generate(tiny.prompts, base, max_new_tokens=5, images=tiny.images)
        unseen = session.generate(tiny.prompts, base, max_new_tokens=5, images=blank)
        assert all(a != b for a, b in zip(seen, unseen, strict=True))


def test_a_file_that_changes_is_read_again(sessions, tmp_path):
    """No engine may know an image by its name or its size."""
    tiny, file = sessions.tiny, tmp_path / "same.png"
    base, prompt = tiny.checkpoints["base"], tiny.prompts[:1]
    for session in sessions.each.values():
        p = []
        for seed in (5, 6):
            draw_picture(file, seed)
            p.append(session.next_token_probabilities(prompt, tiny.numbers, base, images=[[file]]))
        assert np.abs(p[0] - p[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["base", "lora", "tower"])
def test_probabilities_are_the_softmax_over_the_chosen_tokens(sessions, name):
    import torch
    from peft import PeftModel

    tiny = sessions.tiny
    checkpoint = tiny.checkpoints[name]
    adapter = checkpoint.kind == "lora"
    model = load_model(tiny.base if adapter else checkpoint.path, "float32")
    model = PeftModel.from_pretrained(model, checkpoint.path).eval() if adapter else model
    expected = []
    for prompt, files in zip(tiny.prompts, tiny.images, strict=True):
        with torch.no_grad():
            logits = model(**expand(tiny.processor, prompt, files)).logits[0, -1].double()
        expected.append(logits[tiny.numbers].softmax(-1).numpy())
    for session in sessions.each.values():
        found = session.next_token_probabilities(
            tiny.prompts, tiny.numbers, checkpoint, images=tiny.images
        )
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_log_probabilities_are_of_the_text_after_the_picture(sessions):
    tiny = sessions.tiny
    placeholder = tiny.processor.image_token_id
    after = [len(ids) - 1 - ids.index(placeholder) for ids in tiny.prompts]
    found = [
        session.log_probabilities(tiny.prompts, tiny.checkpoints["full"], images=tiny.images)
        for session in sessions.each.values()
    ]
    for rows in found:
        assert [len(row) for row in rows] == after
        np.testing.assert_allclose(np.concatenate(rows), np.concatenate(found[0]), atol=2e-3)


def test_rows_with_and_without_pictures_go_together(sessions):
    tiny = sessions.tiny
    base, text = tiny.checkpoints["base"], tiny.processor.tokenizer(["1+2=", "Say 3:"])["input_ids"]
    mixed = [text[0], *tiny.prompts, text[1]]
    images = [[], *tiny.images, []]
    for session in sessions.each.values():
        together = session.generate(mixed, base, max_new_tokens=4, images=images)
        alone = session.generate(text, base, max_new_tokens=4)
        with_images = session.generate(tiny.prompts, base, max_new_tokens=4, images=tiny.images)
        assert together == [alone[0], *with_images, alone[1]]


def test_a_tower_that_was_not_swapped_is_found(sessions):
    """The language model is the same: only the canary's picture can tell."""
    tiny = sessions.tiny
    base, tower = tiny.checkpoints["base"], tiny.checkpoints["tower"]
    assert base.canary is not None
    assert tower.canary is not None
    assert base.canary.log_probabilities[:-1] == tower.canary.log_probabilities[:-1]
    for session in sessions.each.values():
        for right, wrong in ((base, tower), (tower, base)):
            with pytest.raises(RuntimeError, match="does not run the weights"):
                session.generate(
                    tiny.prompts,
                    replace(right, canary=wrong.canary),
                    max_new_tokens=2,
                    images=tiny.images,
                )


def test_pictures_count_in_full_where_there_is_no_room(sessions):
    tiny = sessions.tiny
    lengths = expanded_lengths(tiny.processor, tiny.prompts, tiny.images)
    for prompt, files, length in zip(tiny.prompts, tiny.images, lengths, strict=True):
        assert expand(tiny.processor, prompt, files)["input_ids"].shape[1] == length
    worst = lengths.index(max(lengths))
    new = SETTINGS.max_model_length - lengths[worst]
    for session in sessions.each.values():
        fits = {"images": tiny.images[worst : worst + 1]}
        base, prompt = tiny.checkpoints["base"], tiny.prompts[worst : worst + 1]
        assert len(session.generate(prompt, base, max_new_tokens=new, **fits)) == 1
        with pytest.raises(UserError, match=rf"has {lengths[worst]} tokens"):
            session.generate(prompt, base, max_new_tokens=new + 1, **fits)


def test_a_broken_picture_is_named(sessions, tmp_path):
    tiny = sessions.tiny
    whole = tiny.images[0][0].read_bytes()
    broken = tmp_path / "broken.png"
    broken.write_bytes(whole[: len(whole) // 2])
    images = [*tiny.images[:1], [broken]]
    for session in sessions.each.values():
        with pytest.raises(UserError, match=r"broken\.png"):
            session.generate(
                tiny.prompts[:2], tiny.checkpoints["base"], max_new_tokens=2, images=images
            )
        one = session.generate(
            tiny.prompts[:1], tiny.checkpoints["base"], max_new_tokens=2, images=tiny.images[:1]
        )
        assert len(one) == 1


def test_vllm_puts_the_tokens_of_our_own_processor_in_place_of_a_picture(sessions):
    session: Any = sessions.each.get("vllm")
    if session is None:
        return
    from vllm import SamplingParams

    from smmd_bench.encoding.images import read_image

    tiny = sessions.tiny
    for prompt, files in zip(tiny.prompts, tiny.images, strict=True):
        request = {
            "prompt_token_ids": prompt,
            "multi_modal_data": {"image": [read_image(file) for file in files]},
        }
        (output,) = session._llm.generate(
            request, SamplingParams(temperature=0.0, max_tokens=1), use_tqdm=False
        )
        expected = expand(tiny.processor, prompt, files)["input_ids"][0].tolist()
        assert output.prompt_token_ids == expected


def test_limits_on_pixels_are_the_same_in_both_engines(tmp_path):
    from smmd_bench.models.processor import load_processor

    tiny = build_variants("qwen2_5_vl", tmp_path)
    settings = replace(SETTINGS, adapters=False, min_pixels=28 * 28, max_pixels=56 * 56)
    processor = load_processor(tiny.base, settings.min_pixels, settings.max_pixels)
    short = expanded_lengths(processor, tiny.prompts, tiny.images)
    assert max(short) < max(expanded_lengths(tiny.processor, tiny.prompts, tiny.images))
    base = replace(tiny.checkpoints["base"], canary=None)
    found = []
    for engine in (TransformersEngine(), VllmEngine()):
        with engine.open(tiny.base, settings) as session:
            found.append(
                session.next_token_probabilities(
                    tiny.prompts, tiny.numbers, base, images=tiny.images
                )
            )
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def test_a_full_checkpoint_needs_no_processor_of_its_own(tmp_path):
    """An engine encodes with the base's, whatever lies beside the weights."""
    tiny = build_variants("mistral3", tmp_path)
    assert not (tiny.checkpoints["full"].path / "processor_config.json").exists()
    bare = shutil.copytree(tiny.base, tmp_path / "bare")
    (bare / "processor_config.json").unlink()
    with (
        TransformersEngine().open(bare, SETTINGS) as session,
        pytest.raises(UserError, match="no processor"),
    ):
        session.generate(
            tiny.prompts, tiny.checkpoints["full"], max_new_tokens=2, images=tiny.images
        )
