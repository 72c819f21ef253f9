"""Which checkpoint a model name means, what identifies its weights, and the recipe it carries.

`builtin/tiny` lies in this package; a path is a local folder; anything else is a name on the
Hugging Face hub, `org/name` or `org/name@revision`, fetched with huggingface_hub. The paper's
backbones have their cards in `models/backbones.yaml`.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ..errors import UnreachableError, UserError
from ..plugin_system.checked_task import reads_files
from ..plugin_system.parameters import parameters_of, spell, split_spec
from ..plugin_system.registry import load_task
from ..storage.addresses import digest_of_files
from ..storage.data_files import explain_hub, fetch_snapshot, folder_is_given
from ..storage.files import read_given_json
from .card_content import BUILTIN, CardContent, backbones, builtin_folder, card_content
from .recipe import Recipe

_WITH_WEIGHTS = ContextVar("_WITH_WEIGHTS", default=True)
_WEIGHTS = "*.safetensors"
_SIXTEEN_BITS = ("float16", "bfloat16", "F16", "BF16")
# All else of a repository on the hub, such as pickles, is neither fetched nor part of an identity.
_PARTS = (
    _WEIGHTS, "*.safetensors.index.json", "config.json", "generation_config.json",
    "tokenizer*.json", "*.model", "special_tokens_map.json", "added_tokens.json", "tekken.json",
    "vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json",
    "processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json",
    "adapter_config.json",
)  # fmt: skip


@dataclass(frozen=True)
class ModelCard:
    """A checkpoint on disk and what goes with it. `identity` names its weights and tokenizer."""

    name: str
    label: str
    folder: Path
    identity: Mapping[str, str]
    content: CardContent

    @property
    def place(self) -> str | None:
        """The absolute path of a folder of the user's; None: it is built in, or of the hub."""
        is_local = "hub" not in self.identity and not self.name.startswith(BUILTIN)
        return str(self.folder.absolute()) if is_local else None

    @property
    def weights_are_here(self) -> bool:
        """Whether weights must be on disk; within `without_weights` those of the hub need not."""
        return _WITH_WEIGHTS.get() or "hub" not in self.identity

    def recipe(
        self, task_name: str, changes: Mapping[str, Any] | None = None
    ) -> Recipe:
        """The card's own recipe if it has one, else the paper's; with the card's settings, and then
        with `changes`. `dtype` is what `auto` means here."""
        recipe = self.content.recipe_of(task_name).changed(changes or {})
        return replace(recipe, dtype=self.dtype) if recipe.dtype == "auto" else recipe

    @property
    def dtype(self) -> Literal["float32", "bfloat16"]:
        """The checkpoint's own: by config.json, or, where that names none, of most of its weights.
        One of 16 bits is bfloat16, as float16 overflows in training."""
        config = read_given_json(self.folder / "config.json")
        text_config = config.get("text_config") or {}
        # Models with pictures may say it of their language model, older files as torch_dtype.
        named = [
            part.get(key)
            for part in (config, text_config)
            for key in ("dtype", "torch_dtype")
        ]
        dtype = next(filter(None, named), None)
        if dtype is None:
            counts = self._weights()
            dtype = max(counts, key=counts.__getitem__, default=None)
        return "bfloat16" if dtype in _SIXTEEN_BITS else "float32"

    def task_spec(self, spec: str) -> str:
        """The task spec with the card's task parameters where the spec names none. Raises UserError
        if the task has no such parameter, or if they keep it from reading the folder that
        --data-dir gives."""
        name, values = split_spec(spec)
        parameters = self.content.parameters_of(name)
        if values or not parameters:
            return spec
        assignments = [f"{key}={spell(value)}" for key, value in parameters.items()]
        of_card = f"{name}[{','.join(assignments)}]"

        try:
            changed = load_task(of_card)
        except UserError as error:
            card = self.folder / "card.yaml"
            raise UserError(f"The card {card} sets {of_card}: {error}") from error

        # --data-dir asks for real data, where a card may ask for synthetic ones.
        bare = load_task(name)
        if folder_is_given() and reads_files(bare) and not reads_files(changed):
            fields = parameters_of(type(bare))
            defaults = [
                f"{key}={getattr(bare, fields[key].field)}" for key in parameters
            ]
            raise UserError(
                f"{name} would not read --data-dir with {self.name}, whose card asks for "
                f"{of_card}: write {name}[{','.join(defaults)}] to train on those data, or leave "
                "--data-dir out."
            )
        return of_card

    def parameter_count(self) -> int:
        """How many weights the safetensors files hold; raises UserError for a broken one.

        Within `without_weights`, of a hub model that is not here: what its tables or its files'
        headers on the hub say.
        """
        # The cards of backbones say it, so that a plan needs no weights of the hub.
        written = self.content.params
        if written.endswith("B") and not any(self.folder.glob(_WEIGHTS)):
            return round(float(written.removesuffix("B")) * 1e9)
        return sum(self._weights().values())

    def _weights(self) -> Mapping[str, int]:
        """How many weights there are of each dtype, as safetensors names it."""
        files = sorted(self.folder.glob(_WEIGHTS))
        if files or "hub" not in self.identity:
            return sum((_weights_in(file) for file in files), Counter())
        return _weights_on_the_hub(self.identity["hub"], self.identity["commit"])

    def require_numeric_tokens(self, count: int) -> None:
        """Raise UserError if the card says another size of the numeric vocabulary than `count`."""
        expected = self.content.numeric_tokens
        if expected not in (count, None):
            raise UserError(
                f"The tokenizer of {self.name} has {count} numeric tokens by the rule 'integer', "
                f"and its card says {expected}: put the model's own tokenizer into {self.folder}."
            )


@contextmanager
def without_weights() -> Iterator[None]:
    """For a plan: within it the weights of hub models are not fetched, only their small files."""
    token = _WITH_WEIGHTS.set(False)
    # A card of within has no weights, and one of outside has fetched them.
    model_card.cache_clear()
    try:
        yield
    finally:
        _WITH_WEIGHTS.reset(token)
        model_card.cache_clear()


# Once a process: the digest of a folder reads all of its weights.
@cache
def model_card(name: str) -> ModelCard:
    """Find a model by name. Raises UserError for an unknown built-in, a folder that is not a
    checkpoint, a hub name that cannot be fetched, a broken config.json or safetensors file, or a
    card with a mistake."""
    folder = local_path(name)
    # A name on the hub has exactly one slash.
    is_path = name.startswith((".", "/", "~")) or name.count("/") != 1
    if name.startswith(BUILTIN):
        card = _card_of_folder(name, builtin_folder(name), name)
    elif folder.is_dir() or is_path:
        card = _local_card(name, folder)
    else:
        card = _hub_card(name)

    if read_given_json(card.folder / "config.json").get("quantization_config"):
        raise UserError(
            f"The weights of '{name}' are quantised, and no quantised weights are trained here: "
            "give the checkpoint that they were made from."
        )
    if (card.folder / "adapter_config.json").exists():
        raise UserError(
            f"The checkpoint folder '{name}' holds a model and, by adapter_config.json, an "
            "adapter, which transformers would add to it: merge it, and remove its files."
        )

    card.parameter_count()  # reads the headers of all weights
    return card


def content_at_hand(name: str) -> CardContent:
    """What the card of a model says; of one that is neither here nor to be fetched, what this
    package knows of it."""
    try:
        return model_card(name).content
    except UnreachableError:
        return backbones().get(name.partition("@")[0], CardContent())


def card_at(name: str, place: str | None) -> ModelCard:
    """The model that a name meant where it was given: in the folder `place` (None: it was none), or
    else what it means here. Raises UserError where neither is there."""
    # A run that was moved with its checkpoint is named from where it stands now.
    if place is None or (not Path(place).is_dir() and local_path(name).is_dir()):
        return model_card(name)
    if not Path(place).is_dir():
        raise UserError(
            f"The checkpoint folder {place} (the model '{name}') is not there any more: move it "
            "back, or put a link to it there."
        )
    return replace(model_card(place), name=name)


def local_path(name: str) -> Path:
    """The path that a model's name is, whether or not there is a folder."""
    return Path(name).expanduser()


def _local_card(name: str, folder: Path) -> ModelCard:
    if not folder.is_dir():
        raise UserError(
            f"The checkpoint folder '{name}' does not exist: give a folder with config.json and "
            "*.safetensors, a hub name such as Qwen/Qwen2.5-0.5B, or builtin/tiny."
        )

    missing = _find_missing(folder)
    if missing is not None:
        raise UserError(
            f"The checkpoint folder '{name}' has no {missing}: save the whole model there with "
            "save_pretrained (safetensors only), an adapter merged into its base, as `smmd-bench "
            "export RUN --merged` does."
        )
    return _card_of_folder(name, folder, folder.name)


def _card_of_folder(name: str, folder: Path, label: str) -> ModelCard:
    card = folder / "card.yaml"
    content = card_content(card) if card.exists() else CardContent()
    return ModelCard(name, content.label or label, folder, _identity(folder), content)


def _hub_card(name: str) -> ModelCard:
    repository, _, revision = name.partition("@")
    patterns = [part for part in _PARTS if part != _WEIGHTS or _WITH_WEIGHTS.get()]
    folder = fetch_snapshot(
        f"The model '{name}' is not a folder here and",
        "check the name and the connection, or give a local folder",
        repository,
        revision=revision or None,
        allow_patterns=["README.md", *patterns],  # it says the licence
    )
    missing = _find_missing(folder)
    if missing is not None:
        raise UserError(
            f"The model '{name}' has no {missing} on the hub, and pickles are never loaded: take "
            "a revision that has it (org/name@revision), or convert a copy with save_pretrained."
        )

    content = backbones().get(repository, CardContent())
    identity = {"hub": repository, "commit": folder.name}
    return ModelCard(name, content.label or repository, folder, identity, content)


def _find_missing(folder: Path) -> str | None:
    """The pattern of a part that a checkpoint cannot do without; None: all are there."""
    needed = ("config.json", _WEIGHTS) if _WITH_WEIGHTS.get() else ("config.json",)
    return next((pattern for pattern in needed if not any(folder.glob(pattern))), None)


def _identity(folder: Path) -> dict[str, str]:
    parts = {file for pattern in _PARTS for file in folder.glob(pattern)}
    return {"digest": digest_of_files(parts, folder)}


@cache
def _weights_in(file: Path) -> Counter[str]:
    from safetensors import SafetensorError, safe_open

    counts: Counter[str] = Counter()
    try:
        with safe_open(file, framework="numpy") as tensors:
            # A slice has the shape without reading the values.
            for tensor in map(tensors.get_slice, tensors.keys()):
                counts[tensor.get_dtype()] += math.prod(tensor.get_shape())
    except SafetensorError as error:
        raise UserError(
            f"The weights {file} are not a whole safetensors file ({error}): copy or save the "
            "checkpoint again."
        ) from error
    return counts


def _weights_on_the_hub(repository: str, commit: str) -> Mapping[str, int]:
    from huggingface_hub import get_safetensors_metadata

    problem = f"The size of the model '{repository}' cannot be read from the hub"
    remedy = f"fetch it first with smmd-bench prepare --model {repository}"
    with explain_hub(problem, remedy):
        metadata = get_safetensors_metadata(repository, revision=commit)
    return {str(dtype): count for dtype, count in metadata.parameter_count.items()}


def licence_of(card: ModelCard) -> str | None:
    """What the README of a model says (on the hub it is fetched with it); None: nothing."""
    if card.name.startswith(BUILTIN):
        return "Apache-2.0, part of smmd-bench"
    readme = card.folder / "README.md"
    if not readme.is_file():
        return None
    from huggingface_hub import ModelCard as HubCard

    try:
        data = HubCard.load(readme, ignore_metadata_errors=True).data
    except (OSError, ValueError):  # no text, or a head that is no YAML
        return None

    licence = data.get("license_name") or data.get("license")
    if isinstance(licence, list):
        return ", ".join(licence)
    return licence and str(licence)
