"""What every test shares: the environment before torch is imported, and tiny checkpoints."""

import os

# libgomp reads these once, when torch is loaded. Two one-thread trainings at once do 1.8 times the
# work of one with two threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# reports have no helper: the other core has tests
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import gc
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from smmd_bench.contracts import Checkpoint, Example
from smmd_bench.errors import UserError
from smmd_bench.plugin_system import registry

settings.register_profile("untimed", deadline=None)  # a first call may import a library
settings.load_profile("untimed")

DATA = Path(__file__).parent / "data"
TOKENIZERS = DATA / "tokenizers"
LONG = {"engine", "long", "slow", "docs"}
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LIBRARY_WARNINGS = (
    # vLLM reads every attribute of every imported module when its CPU worker starts
    "ignore:`torch.distributed.reduce_op` is deprecated:FutureWarning",
    # transformers 5.19 calls Mllama's encoder layers by a name that it deprecates itself
    "ignore:`hidden_state` is deprecated.*MllamaVisionEncoderLayer:FutureWarning",
)


def pytest_configure(config: pytest.Config) -> None:
    """Warnings are errors, but for those that libraries give of themselves."""
    for line in LIBRARY_WARNINGS:
        config.addinivalue_line("filterwarnings", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files come first, so that no process is left alone with one at the end."""
    long = {item.path for item in items if LONG & {*item.keywords}}
    items.sort(key=lambda item: item.path not in long)


def pytest_sessionfinish() -> None:
    """Libraries that count what is left at the end of a process count none of it."""
    gc.unfreeze()


def read_files(folder: Path) -> dict[str, bytes]:
    """The files of a folder, but for the lock of a run."""
    files = (
        file for file in folder.rglob("*") if file.is_file() and file.name != ".lock"
    )
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def silent(*_: object) -> None:
    """Progress for nobody."""


@contextmanager
def expect_user_error(pattern):
    """Require a user's mistake whose message matches the pattern and is one line."""
    with pytest.raises(UserError, match=pattern) as error:
        yield error
    assert "\n" not in str(error.value)


@dataclass(frozen=True)
class TinyCheckpoints:
    """A base with two adapters (lora1, lora2) and two full variants (full1, full2), by name."""

    tokenizer: Any
    base: Path
    checkpoints: Mapping[str, Checkpoint]


@pytest.fixture(scope="module", autouse=True)
def frozen_objects():
    """What is there before a file of tests stays: the collections that each training and engine
    asks for do not walk over all imported modules again, half a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory):
    """`tiny_checkpoints("digit")`: a Qwen2 with tied embeddings and N = 10; `"triple"`: a Llama
    with a head of its own and N = 1000. Each is made once, in about five seconds."""
    return cache(lambda kind: _build(kind, tmp_path_factory.mktemp(kind)))


@pytest.fixture(scope="session")
def tiny(tiny_checkpoints):
    """The one with a token a digit."""
    return tiny_checkpoints("digit")


@pytest.fixture
def local_copies(monkeypatch):
    """The folder of local copies has the first rows of each data set."""
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))


@contextmanager
def separate_plugins() -> Iterator[None]:
    """What plugin files define inside is unknown outside."""
    plugins = {group: {**loaded} for group, loaded in registry._from_files.items()}
    files = [*registry._files]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_from_files", plugins)
        patch.setattr(registry, "_files", files)
        yield
    if registry._files != files:
        forget_loaded()


def forget_loaded() -> None:
    """Load tasks, losses and engines anew."""
    for loader in (registry.load_task, registry.load_loss, registry.load_engine):
        loader.cache_clear()


@pytest.fixture(autouse=True)
def own_plugins():
    """Plugin files of one test are not those of the next."""
    with separate_plugins():
        yield


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """The default synthetic run: base, ce, ntl and smmd, two seeds. Only to be read."""
    from .runs import write_run

    return write_run(tmp_path_factory.mktemp("runs") / "synthetic").path


@pytest.fixture(scope="session")
def times(tmp_path_factory):
    """Twelve pictures of three sizes, each with a time of its own."""
    from .tiny_vlms import draw_picture

    folder = tmp_path_factory.mktemp("pictures")
    sizes = [(56, 56), (84, 84), (112, 56)]
    pictures = [draw_picture(folder / f"{i}.png", i, sizes[i % 3]) for i in range(12)]
    prompts = ["Time?", "What time is it?"] * 6
    targets = [f" {i + 1}:{7 * i % 60:02d}" for i in range(12)]
    return [
        Example(f"{i}", prompts[i], targets[i], None, images=(pictures[i],))
        for i in range(12)
    ]


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    from .chromium import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory):
    """`tiny_vlm("mllama")`: the folder of a random checkpoint of an architecture of
    `tests.tiny_vlms`, made once, in about a second."""
    from .tiny_vlms import build_vlm

    return cache(lambda name: build_vlm(name, tmp_path_factory.mktemp("vlm") / name))


def _build(kind: str, root: Path) -> TinyCheckpoints:
    """Trained a little on sums, the variants on sums that are off by something of their own."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from smmd_bench.training.canary import make_canary
    from smmd_bench.training.canary_texts import general_texts

    from .tiny_lms import tiny_config

    logging.disable_progress_bar()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / kind)
    architecture = {"digit": "qwen2", "triple": "llama"}[kind]
    shape = {"max_position_embeddings": 256, "tie_word_embeddings": kind == "digit"}
    model = AutoModelForCausalLM.from_config(
        tiny_config(architecture, tokenizer, **shape)
    )
    checkpoints = {}

    def save(name: str, trained: Any) -> None:
        trained.save_pretrained(root / name)
        if not name.startswith("lora"):
            tokenizer.save_pretrained(root / name)
        canary = make_canary(trained, general_texts(tokenizer))
        checkpoints[name] = Checkpoint(name, name.rstrip("12"), root / name, canary)

    _train(model, tokenizer, steps=100, seed=0, offset=0, learning_rate=4e-3)
    save("base", model)
    for seed in (1, 2):
        full = AutoModelForCausalLM.from_pretrained(root / "base")
        _train(full, tokenizer, steps=25, seed=seed, offset=seed, learning_rate=3e-3)
        save(f"full{seed}", full)
        torch.manual_seed(seed)
        lora = get_peft_model(
            AutoModelForCausalLM.from_pretrained(root / "base"),
            LoraConfig(
                r=8, lora_alpha=16, target_modules=LINEAR, task_type="CAUSAL_LM"
            ),
        )
        _train(
            lora,
            tokenizer,
            steps=40,
            seed=10 + seed,
            offset=3 * seed,
            learning_rate=5e-3,
        )
        save(f"lora{seed}", lora)

    torch.set_num_threads(threads)
    return TinyCheckpoints(tokenizer, root / "base", checkpoints)


def _train(
    model: Any,
    tokenizer: Any,
    *,
    steps: int,
    seed: int,
    offset: int,
    learning_rate: float,
) -> None:
    """Plain training of the answers of `a+b=c`, 64 of them a step, with a + b + offset for c."""
    import torch

    draw = random.Random(seed)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate)
    model.train()

    for _ in range(steps):
        pairs = [(draw.randrange(10), draw.randrange(10)) for _ in range(64)]
        texts = [f"{a}+{b}={a + b + offset}{tokenizer.eos_token}" for a, b in pairs]
        batch = tokenizer(
            texts, padding=True, padding_side="right", return_tensors="pt"
        )
        ids = batch["input_ids"]
        equals = ids == tokenizer.convert_tokens_to_ids("=")
        before_answer = equals.flip(1).cumsum(1).flip(1) > 0  # up to and with "="
        labels = ids.masked_fill(before_answer | (batch["attention_mask"] == 0), -100)
        model(**batch, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
