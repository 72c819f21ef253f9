"""Scoring of examples with images: encoding, frames, canaries, and the decode stage."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine

from smmd_bench.contracts import Canary, Checkpoint, EngineSettings, Example
from smmd_bench.decoding.answer_digits import answer_digits
from smmd_bench.decoding.canary_check import check_canary
from smmd_bench.decoding.decode import decode_checkpoint
from smmd_bench.decoding.probe import probe
from smmd_bench.decoding.stage import decode_cells
from smmd_bench.encoding.images import read_image
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.encoding.pictures import expand
from smmd_bench.encoding.prompts import encode_examples, encode_targets, expanded_lengths, images_of
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.loading import load_model
from smmd_bench.models.processor import load_processor
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.training.canary import canary_from, canary_images, make_canary
from smmd_bench.training.canary_picture import SIZE, canary_picture
from smmd_bench.training.stage import train_cell

from ..tiny_vlms import draw_picture

SETTINGS = EngineSettings(max_model_length=256)


@pytest.fixture
def examples(tmp_path: Path) -> list[Example]:
    files = [draw_picture(tmp_path / f"{n}.png", n, size) for n, size in enumerate([(84, 84)] * 3)]
    targets = (" 1:05", " 12:40", " 7")
    return [
        Example(f"e{n}", f"Time {n}?", target, None, images=(file,))
        for n, (file, target) in enumerate(zip(files, targets, strict=True))
    ]


@pytest.fixture
def base(tiny_vlm: Callable[[str], Path]) -> Checkpoint:
    return Checkpoint("base", "base", tiny_vlm("qwen2_5_vl"))


def test_a_frame_names_the_image_and_counts_its_tokens(
    base: Checkpoint, examples: list[Example]
) -> None:
    processor = load_processor(base.path)
    mixed = [*examples, Example("text", "3+4=", "7", None)]
    with TransformersEngine().open(base.path, SETTINGS) as session:
        frame = decode_checkpoint(session, base, mixed, processor.tokenizer, 4, processor=processor)
        (alone,) = session.generate(
            encode_examples(processor.tokenizer, processor, mixed[1:2]),
            base,
            max_new_tokens=4,
            images=images_of(mixed[1:2]),
        )
    assert frame["image"].tolist()[:3] == [str(e.images[0]) for e in examples]
    assert pd.isna(frame["image"][3])
    assert frame["completion"][1] == alone.text
    prompts = encode_examples(processor.tokenizer, processor, mixed)
    rows = [expand(processor, ids, e.images) for ids, e in zip(prompts, mixed, strict=True)]
    assert frame["prompt_tokens"].tolist() == [row["input_ids"].shape[1] for row in rows]


def test_examples_without_images_need_no_processor(base: Checkpoint) -> None:
    tokenizer = load_processor(base.path).tokenizer
    examples = [Example("text", "3+4=", "7", None)]
    assert images_of(examples) is None
    with TransformersEngine().open(base.path, SETTINGS) as session:
        assert "image" not in decode_checkpoint(session, base, examples, tokenizer, 2)


def test_images_of_one_size_are_looked_at_once(
    base: Checkpoint, examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    from smmd_bench.encoding import prompts as encoding

    processor = load_processor(base.path)
    prompts = encode_examples(processor.tokenizer, processor, examples)
    calls: list[Any] = []
    counted = encoding.picture_tokens
    monkeypatch.setattr(
        encoding, "picture_tokens", lambda *words: calls.append(words) or counted(*words)
    )
    lengths = expanded_lengths(processor, prompts * 5, [e.images for e in examples] * 5)
    assert len(calls) == 1
    assert lengths[:3] == [
        expand(processor, ids, e.images)["input_ids"].shape[1]
        for ids, e in zip(prompts, examples, strict=True)
    ]


def test_every_prefix_of_a_probe_sees_the_image(base: Checkpoint, examples: list[Example]) -> None:
    import torch

    processor = load_processor(base.path)
    tokenizer = processor.tokenizer
    vocabulary = numeric_vocabulary(tokenizer)
    prompts = encode_examples(tokenizer, processor, examples)
    targets = encode_targets(tokenizer, [e.target for e in examples])
    with TransformersEngine().open(base.path, SETTINGS) as session:
        frame = probe(
            session, base, prompts, targets, [e.uid for e in examples], vocabulary,
            answer_digits=answer_digits(tokenizer, examples, targets), images=images_of(examples),
        )  # fmt: skip
    assert set(frame["answer_digit"]) == {-1}  # these examples have no answer
    assert frame["target_value"].tolist() == [1, 0, 5, 1, 2, 4, 0, 7]
    model = load_model(base.path, "float32")
    for row in frame.itertuples():
        index = int(str(row.uid)[1:])
        ids = [*prompts[index], *targets[index][: row.position]]
        with torch.no_grad():
            logits = model(**expand(processor, ids, examples[index].images)).logits[0, -1]
        p = logits.double()[vocabulary.token_ids].softmax(-1).numpy()
        np.testing.assert_allclose(row.vector, p, atol=1e-4)


def test_the_canarys_picture_is_drawn_once_and_the_same_everywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))
    file = canary_picture()
    assert file.is_relative_to(tmp_path)
    assert file.name == "95abb21d415a.png"
    image = read_image(file)
    assert image.size == (SIZE, SIZE)
    assert np.asarray(image).std(axis=(0, 1)).min() > 20
    before = file.stat().st_mtime_ns
    assert canary_picture() == file
    assert file.stat().st_mtime_ns == before


@pytest.mark.filterwarnings("ignore:`hidden_state` is deprecated:FutureWarning")
@pytest.mark.parametrize("architecture", ["qwen2_5_vl", "mistral3", "mllama"])
def test_a_canary_with_a_picture_is_plain_and_sees_the_tower(
    tiny_vlm: Callable[[str], Path], architecture: str
) -> None:
    import torch

    folder = tiny_vlm(architecture)
    processor = load_processor(folder)
    model = load_model(folder, "float32")
    text, seeing = (make_canary(model, processor.tokenizer, p) for p in (None, processor))
    assert seeing.pictures == 1
    assert seeing.token_ids[:-1] == text.token_ids
    assert seeing.log_probabilities[:-1] == text.log_probabilities
    assert canary_from(json.loads(json.dumps(asdict(seeing)))) == seeing
    images = canary_images(seeing)
    assert images is not None
    assert images == [*[[]] * len(text.token_ids), [canary_picture()]]
    assert canary_images(text) is None
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ("visual" in name or "vision" in name) and parameter.dim() > 1:
                parameter.mul_(1.5)
    other = make_canary(model, processor.tokenizer, processor)
    assert other.log_probabilities[:-1] == seeing.log_probabilities[:-1]
    assert np.abs(np.subtract(other.log_probabilities[-1], seeing.log_probabilities[-1])).max() > 1


def test_in_half_precision_the_picture_counts_by_itself() -> None:
    """Nine tokens of text are right; the one after the picture is off by 0.5."""
    canary = Canary((tuple(range(10)), (1, 2)), ((-1.0,) * 9, (-1.0,)), pictures=1)
    checkpoint = Checkpoint("epoch 2", "full", Path("here"), canary)
    check_canary(checkpoint, [[-1.0] * 9, [-1.05]], "bfloat16")
    with pytest.raises(RuntimeError, match="epoch 2"):
        check_canary(checkpoint, [[-1.0] * 9, [-1.5]], "bfloat16")


FEW = {"train_examples": 4, "validation_examples": 2, "test_examples": 3, "epochs": 1}


def test_cells_with_other_limits_on_pixels_and_text_are_decoded_with_their_own(
    tiny_vlm: Callable[[str], Path], tmp_path: Path
) -> None:
    """Each has a canary, made with its own limits: a session with another's would not pass."""
    folder = tiny_vlm("qwen2_5_vl")
    cells: list[Cell] = []
    for limit in (None, 56 * 56):
        recipe = {**FEW, "max_pixels": limit}
        tasks = ("clock_time",) if limit else ("arithmetic[level=easy]", "clock_time")
        experiment = Experiment(
            tasks, ("ce",), (str(folder),), engine="transformers", recipe=recipe
        )
        cells += [cell for cell in experiment.cells if cell.is_base]
    placed = [(cell, tmp_path / "cells" / cell.addresses["train"]) for cell in cells]
    for cell, place in placed:
        train_cell(cell, place, lambda *_: None)
    starts: list[int] = []
    failures = decode_cells(
        placed, lambda what, done, _: starts.append(done) if what == "start engine" else None
    )
    assert failures == {}
    assert starts == [0, 1, 0, 1]
    frames = {p.name: pd.read_parquet(p / "completions.parquet") for _, p in placed}
    counts = [frames[p.name]["prompt_tokens"].median() for c, p in placed if c.reads_images]
    assert counts[0] == counts[1] + 12  # 16 tokens of an image, and 4
    assert ["image" in frames[p.name] for _, p in placed] == [False, True, True]
    for cell, place in placed:
        receipt = read_json(place / "train.json")
        assert receipt is not None
        assert receipt["epochs"][0]["canary"]["pictures"] == int(cell.reads_images)
        assert pd.read_parquet(place / "probes.parquet")["p_target"].notna().all()


def test_an_engine_that_does_not_start_fails_its_own_cells_alone(
    tiny_vlm: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = str(tiny_vlm("qwen2_5_vl"))
    placed = []
    for limit in (5, None, 56 * 56):  # 5: less than one token shows
        recipe = {**FEW, "max_pixels": limit}
        experiment = Experiment(
            ("clock_time",), ("ce",), (folder,), engine="transformers", recipe=recipe
        )
        cell = experiment.cells[0]
        placed.append((cell, tmp_path / "cells" / cell.addresses["train"]))
    for cell, place in placed[1:]:
        train_cell(cell, place, lambda *_: None)
    bad, *good = [place for _, place in placed]
    failures = decode_cells(placed, lambda *_: None)
    assert list(failures) == [bad]
    assert "max_pixels=5 is less than" in str(failures[bad])
    assert all((place / "completions.parquet").is_file() for place in good)
    again = decode_cells([*placed[1:], placed[0]], lambda *_: None)
    assert list(again) == [bad]


def test_nothing_is_decoded_where_only_the_picture_tells_that_the_weights_are_others(
    tiny_vlm: Callable[[str], Path], tmp_path: Path
) -> None:
    recipe = {**FEW, "test_examples": 2}
    cell = Experiment(
        ("clock_time",), ("ce",), (str(tiny_vlm("mistral3")),), engine="transformers", recipe=recipe
    ).cells[0]
    place = tmp_path / "cells" / cell.addresses["train"]
    train_cell(cell, place, lambda *_: None)
    receipt = read_json(place / "train.json")
    assert receipt is not None
    receipt["epochs"][0]["canary"]["log_probabilities"][-1][0] += 0.01
    write_json(place / "train.json", receipt)
    failures = decode_cells([(cell, place)], lambda *_: None)
    assert "does not run the weights of checkpoint 'base'" in str(failures[place])
    assert not (place / "completions.parquet").exists()
