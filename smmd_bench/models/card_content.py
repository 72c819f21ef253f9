"""What a model card says: the keys of a card.yaml, and of an entry of `models/backbones.yaml`."""

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from ..errors import UserError, did_you_mean, quoted
from .recipe import Count, Recipe, checked_settings, paper_recipe
from .settings import Settings, read_mapping

BUILTIN = "builtin/"
_FOLDER = Path(str(files("smmd_bench.models")))
RecipeSettings = Annotated[dict[str, Any], AfterValidator(checked_settings)]


@dataclass(frozen=True)
class CardContent(Settings):
    """The keys of a card.

    label: how tables name the model. summary: for `smmd-bench ls models`. params: how many
    parameters, as people write it. numeric_tokens: N of its tokenizer by the rule `integer`.
    recipe: settings on top of the defaults, in place of the paper's recipe. settings: on top of
    either. tasks: by task, settings, and `parameters` of the task. micro_batch_sizes: by GPU memory
    in GB; shown, not applied.
    """

    kind: ClassVar[str] = "card key"

    label: str | None = None
    summary: str = ""
    params: str = ""
    numeric_tokens: Count | None = None
    recipe: RecipeSettings | None = None
    settings: RecipeSettings = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    micro_batch_sizes: dict[int, Count] = field(default_factory=dict)

    def recipe_of(self, task_name: str) -> Recipe:
        """The card's own recipe if it has one, else the paper's; with the card's settings."""
        defaults = paper_recipe(task_name) if self.recipe is None else Recipe()
        settings = {
            **(self.recipe or {}),
            **self.settings,
            **self.tasks.get(task_name, {}),
        }
        settings.pop("parameters", None)  # these are the task's
        return defaults.changed(settings)

    def parameters_of(self, task_name: str) -> dict[str, Any]:
        """The parameters that the card gives a task; raises UserError if it is not a mapping."""
        parameters: Any = self.tasks.get(task_name, {}).get("parameters", {})
        plain = (str, int, float, type(None))
        is_plain = isinstance(parameters, dict) and all(
            isinstance(value, plain) for value in parameters.values()
        )
        # They become a part of the task's spec, such as arithmetic[level=hard].
        if not is_plain:
            raise UserError(
                f"The card key tasks[{task_name}][parameters] must be a mapping of names to text "
                f"or numbers, not {quoted(parameters)}."
            )
        return dict(parameters)


def card_content(card: Path) -> CardContent:
    """What a card.yaml says; raises UserError for a mistake in it."""
    origin = f"The card {card}"
    return _checked(read_mapping(card.read_bytes(), origin), origin)


@cache
def backbones() -> Mapping[str, CardContent]:
    """The content of the cards of the paper's backbones, by hub name."""
    file = _FOLDER / "backbones.yaml"
    cards = read_mapping(file.read_bytes(), str(file))
    return {name: _checked(card, f"{name} in {file}") for name, card in cards.items()}


def builtin_folders() -> dict[str, Path]:
    """The folders of the built-in checkpoints, by name."""
    cards = sorted((_FOLDER / "builtin").glob("*/card.yaml"))
    return {f"{BUILTIN}{card.parent.name}": card.parent for card in cards}


def builtin_folder(name: str) -> Path:
    """The folder of a built-in checkpoint. Raises UserError for an unknown name."""
    folders = builtin_folders()
    if name not in folders:
        raise UserError(
            f"Unknown built-in model '{name}': {did_you_mean(name, folders)}"
        )
    return folders[name]


def _checked(values: Any, origin: str) -> CardContent:
    content = CardContent.read(values, origin)
    # Settings of tasks are free mappings to pydantic: making each recipe checks them.
    for task_name in content.tasks:
        try:
            content.recipe_of(task_name), content.parameters_of(task_name)
        except UserError as error:
            raise UserError(f"{origin}: {error}") from None
    return content


@dataclass(frozen=True)
class ListedModel:
    """A model's name and what its card says; sizes are micro-batches by GPU memory in GB."""

    name: str
    summary: str
    micro_batch_sizes: Mapping[str, int] = field(default_factory=dict)


def listed_models() -> list[ListedModel]:
    """The built-in checkpoints, and then the paper's backbones."""
    listed = []
    for name, folder in builtin_folders().items():
        content = card_content(folder / "card.yaml")
        listed.append(ListedModel(name, content.summary))

    for name, card in backbones().items():
        tokens = f"N={card.numeric_tokens}" if card.numeric_tokens else ""
        dtype = card.recipe_of("").dtype
        facts = filter(None, (card.label, card.params, tokens, dtype))
        summary = ", ".join(facts)
        sizes = {str(gb): size for gb, size in card.micro_batch_sizes.items()}
        listed.append(ListedModel(name, summary, sizes))
    return listed
