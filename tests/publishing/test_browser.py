"""The page in a real browser, which may not complain."""

import json

import pytest

from tests.chromium import CHROMIUM

from .conftest import VALUES, N

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
]
EXAMPLES = 4 * N
"""Two tasks with two seeds each."""


@pytest.fixture
def open_page(browser, run):
    """Opens the page once its completions are shown; at the end nothing may have gone wrong."""
    contexts, wrong = [], []

    def opened(width=1280, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda request: wrong.append(request.url) if "http" in request.url else 0
        )
        page.goto((run.path / "reports" / "index.html").as_uri())
        page.wait_for_selector("#examples tbody tr")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def test_it_opens_sorts_a_table_and_shows_the_completions(open_page):
    page = open_page()
    assert page.locator("figure img").evaluate("one => one.naturalWidth") > 300
    button, cells = page.locator("#values th button").first, "#values tbody tr > :first-child"
    rising = ["−2.5 ± 1", "<0.001", "9.5", "10 [9, 11]", "1,000", "–"]
    for expected in (rising, [*rising[-2::-1], "–"]):
        button.focus()
        page.keyboard.press("Enter")
        assert page.locator(cells).all_text_contents() == expected
    assert sorted(expected) == sorted(VALUES)
    where = page.locator("#where")
    assert where.text_content() == f"1–25 of {EXAMPLES} examples"
    assert page.locator("#examples tbody tr").count() == 25
    page.click("#next")
    assert where.text_content() == f"26–50 of {EXAMPLES} examples"
    page.select_option("#group", index=3)
    assert where.text_content() == f"1–25 of {N} examples"
    page.fill("#search", "no such words")
    assert where.text_content() == "no example matches"
    page.click("#filters button")
    page.wait_for_selector(f"#where:text('of {EXAMPLES} examples')")


def test_flips_link_to_their_completions_and_j_and_k_step_through_them(open_page, run):
    page = open_page()
    row = page.locator("#examples tbody tr:focus")
    clocks = run.verdict.query("task == 'clock_time' and loss == 'smmd'").iloc[0]
    links = page.locator("#verdict tr:has-text('clock_time'):has-text('SMMD') a")
    for at, name, (right, wrong) in ((0, "gained", ("SMMD", "CE")), (1, "lost", ("CE", "SMMD"))):
        assert links.nth(at).text_content() == f"{'+−'[at]}{clocks[name]}"
        links.nth(at).click()
        page.wait_for_selector(f"#where:text('of {clocks[name]} examples')")
        for label, mark in ((right, "✓"), (wrong, "✗")):
            texts = page.locator(f"#examples td[data-label={label}]").all_text_contents()
            assert {text[0] for text in texts} == {mark}
        assert 0 <= page.locator("#completions:focus").bounding_box()["y"] < 100
    page.goto(page.url.partition("?")[0] + "?differing=1")
    page.wait_for_selector("#where:text('1–25')")
    for key, expected in [*[("j", at % 25) for at in range(26)], ("k", 24)]:
        page.keyboard.press(key)
        assert row.evaluate("one => one.sectionRowIndex") == expected
        assert 0 <= row.bounding_box()["y"] < 600
    page.fill("#search", "j")
    assert page.evaluate("location.hash") == "#completions?search=j&differing=1"
    assert row.count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_axe_finds_nothing_wrong_and_no_page_is_wider_than_its_window(open_page, width, scheme):
    page = open_page(width=width, color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.Axe().run(page).response["violations"]
    said = [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in found]
    assert found == [], json.dumps(said, indent=1)
