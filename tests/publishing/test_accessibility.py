"""The page by the rules of axe, at a desk and on a phone, in the light and in the dark."""

import json

import pytest

from tests.chromium import CHROMIUM

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
]
OPENED = "all => all.forEach(one => { one.open = true })"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_axe_finds_nothing_wrong(open_page, width, scheme):
    page = open_page(width=width, color_scheme=scheme, reduced_motion="reduce")
    page.locator("#completions td button").first.click()
    page.locator("details").evaluate_all(OPENED)
    found = axe.Axe().run(page).response["violations"]
    said = [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in found]
    assert found == [], json.dumps(said, indent=1)
