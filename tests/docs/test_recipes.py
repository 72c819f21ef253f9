"""docs/recipes.md names every setting of a recipe."""

import dataclasses

from smmd_bench.models.recipe import Recipe

from .documents import ROOT


def test_every_setting_of_a_recipe_is_on_its_page():
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert not [item.name for item in dataclasses.fields(Recipe) if f"`{item.name}`" not in page]
