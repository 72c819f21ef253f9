"""The page in a real browser, which may not complain."""

import json

import pytest

from tests.chromium import CHROMIUM

from .conftest import VALUES, N

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe is not installed"
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
]
EXAMPLES = 4 * N
"""Two tasks with two seeds each."""


@pytest.fixture
def open_page(browser, run):
    """Opens the page once its completions are shown; at the end nothing may have gone wrong."""
    contexts = []
    wrong = []

    def note_request(request):
        if "http" in request.url:
            wrong.append(request.url)

    def open_window(width=1280, **options):
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", note_request)
        page.goto((run.path / "reports/index.html").as_uri())
        page.wait_for_selector("#examples tbody tr")
        return page

    yield open_window
    for context in contexts:
        context.close()
    assert wrong == []


def test_it_opens_sorts_a_table_and_shows_the_completions(open_page):
    page = open_page()
    assert page.locator("figure img").evaluate("one => one.naturalWidth") > 300

    button = page.locator("#values th button").first
    cells = page.locator("#values tbody tr > :first-child")
    rising = ["−2.5 ± 1", "<0.001", "9.5", "10 [9, 11]", "1,000", "–"]
    assert sorted(rising) == sorted(VALUES)

    for expected in (rising, [*rising[-2::-1], "–"]):
        button.focus()
        page.keyboard.press("Enter")
        assert cells.all_text_contents() == expected

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_axe_finds_nothing_wrong_and_no_page_is_wider_than_its_window(
    open_page, width, scheme
):
    page = open_page(width=width, color_scheme=scheme)
    page.locator("details").evaluate_all(
        "all => all.forEach(one => { one.open = true })"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    violations = axe.Axe().run(page).response["violations"]
    summary = []
    for violation in violations:
        targets = [node["target"] for node in violation["nodes"]]
        summary.append((violation["id"], targets[:5]))
    assert violations == [], json.dumps(summary, indent=1)


def test_a_phone_shows_verdict_and_difference_at_once_and_what_scrolls_has_a_shadow(
    open_page,
):
    page = open_page(width=390)
    row = page.locator("#verdict tbody tr").first
    row.scroll_into_view_if_needed()
    for label in ("Loss", "Verdict", "Δ to CE [95 %]"):
        cell = row.locator(f"td[data-label='{label}']")
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390

    # A table that is wider than the phone keeps its first column in view.
    table = page.locator("#values .wide")
    head = table.locator("td.head").first
    place = head.bounding_box()["x"]
    table.evaluate("one => one.scrollBy(200, 0)")
    assert table.evaluate("one => one.scrollLeft") == 200
    assert head.bounding_box()["x"] == pytest.approx(place, abs=2)
    for wide in ("#values .wide", "#both figure"):
        image = page.locator(wide).evaluate(
            "one => getComputedStyle(one).backgroundImage"
        )
        assert image.count("gradient") == 4


def test_flips_link_to_their_completions(open_page, run):
    page = open_page()
    clocks = run.verdict.query("task == 'clock_time' and loss == 'smmd'").iloc[0]
    gained, lost = page.locator(
        "#verdict tr:has-text('clock_time'):has-text('SMMD') a"
    ).all()
    assert gained.text_content() == f"+{clocks['gained']}"
    assert lost.text_content() == f"−{clocks['lost']}"

    gained.click()
    require_marks(page, clocks["gained"], right="SMMD", wrong="CE")
    lost.click()
    require_marks(page, clocks["lost"], right="CE", wrong="SMMD")


def require_marks(page, count, *, right, wrong):
    """So many completions are shown, at the top, and one loss gets all of them right."""
    page.wait_for_selector(f"#where:text('of {count} examples')")
    for label, mark in ((right, "✓"), (wrong, "✗")):
        texts = page.locator(f"#examples td[data-label={label}]").all_text_contents()
        assert {text[0] for text in texts} == {mark}
    box = page.locator("#completions:focus").bounding_box()
    assert 0 <= box["y"] < 100


def test_j_and_k_step_through_the_completions(open_page):
    page = open_page()
    row = page.locator("#examples tbody tr:focus")
    page.goto(page.url + "#completions?differing=1")
    page.wait_for_selector("#where:text('1–25')")

    for key, place in [*[("j", at % 25) for at in range(26)], ("k", 24)]:
        page.keyboard.press(key)
        assert row.evaluate("one => one.sectionRowIndex") == place
        box = row.bounding_box()
        assert 0 <= box["y"] < 600

    page.fill("#search", "j")
    assert page.evaluate("location.hash") == "#completions?search=j&differing=1"
    assert row.count() == 0
