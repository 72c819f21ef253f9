"""The page in a real browser: tables, figures, contents, themes."""

import pytest

from tests.chromium import CHROMIUM

from .conftest import VALUES, N

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
]
GROUPS = 4
RISING = ["−2.5 ± 1", "<0.001", "9.5", "10 [9, 11]", "1,000", "2.1M", "1.2e+39", "–", "failed"]
FALLING = ["1.2e+39", "2.1M", "1,000", "10 [9, 11]", "9.5", "<0.001", "−2.5 ± 1", "–", "failed"]
PAPER = "getComputedStyle(document.body).backgroundColor"
CONTRAST = """(chosen) => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const paper = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parts(getComputedStyle(element).backgroundColor);
      if (colour.length === 3) return colour;
    }
  };
  return Math.min(...[...document.querySelectorAll(chosen)].map((element) => {
    const style = getComputedStyle(element);
    const ink = element.ownerSVGElement ? style.fill : style.color;
    const [a, b] = [light(parts(ink)), light(paper(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
}"""


def column(page, table, number):
    cells = page.locator(f"{table} tbody tr > :nth-child({number})")
    return [str(text) for text in cells.all_text_contents()]


def test_it_loads_without_an_error_or_a_request_and_shows_its_figure(open_page):
    page = open_page()
    assert page.title() == "run – smmd-bench"
    figure = page.locator("figure svg")
    assert figure.count() == 1
    assert figure.bounding_box()["width"] > 350
    assert "right is better" in figure.text_content()
    assert page.text_content("strong") == VALUES[0]
    assert page.text_content("#where") == f"1–25 of {GROUPS * N} examples"


def test_tables_sort_by_a_click_up_down_and_back(open_page):
    page = open_page()
    heading = page.locator("#values th").first
    heading.locator("button").click()
    assert column(page, "#values", 1) == RISING
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.locator("button").click()
    assert column(page, "#values", 1) == FALLING
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").click()
    assert column(page, "#values", 1) == VALUES
    assert heading.get_attribute("aria-sort") is None


def test_the_keyboard_alone_skips_sorts_and_opens(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Value":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert column(page, "#values", 1) == RISING
    page.keyboard.press("Space")
    assert column(page, "#values", 1) == FALLING
    manifest = page.locator("details:has(pre)")
    assert not page.locator("pre").is_visible()
    manifest.locator("summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("pre").is_visible()


@pytest.mark.parametrize("width", [400, 1400])
def test_the_first_screen_shows_results_and_the_contents_stand_aside(open_page, width):
    page = open_page(width=width)
    assert page.locator("#values table").bounding_box()["y"] < 800
    rail = page.locator("#contents ul").first
    assert rail.is_visible() == (width == 1400)
    if width == 1400:
        assert rail.bounding_box()["x"] + rail.bounding_box()["width"] < 300
        page.locator("#all-completions").scroll_into_view_if_needed()
        page.wait_for_selector("nav a[href='#all-completions'][aria-current]")
        assert page.locator("nav a[href='#all-completions']").bounding_box()["y"] < 800


def test_a_heading_has_a_link_that_keeps_the_chosen_view(open_page):
    page = open_page()
    page.locator("#values th button").first.click()
    anchor = page.locator("#overview h3 a")
    assert anchor.evaluate("one => getComputedStyle(one).opacity") == "0"
    anchor.focus()
    assert anchor.evaluate("one => getComputedStyle(one).opacity") == "1"
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('overview')")
    assert "sort.values=Value.up" in page.evaluate("location.hash")
    top = "document.getElementById('overview').getBoundingClientRect().top"
    page.wait_for_function(f"() => 0 <= {top} && {top} < 50")


def test_a_link_shows_a_table_as_it_was_sorted(open_page):
    page = open_page(hash="#values&sort.values=Value.down")
    assert column(page, "#values", 1) == FALLING
    assert page.get_attribute("#values th", "aria-sort") == "descending"
    page.evaluate("location.hash = '#values&sort.values=Value.up'")
    page.wait_for_function("() => document.querySelector('#values th').ariaSort === 'ascending'")
    assert column(page, "#values", 1) == RISING


@pytest.mark.parametrize(
    "hash", ["#%E0%A4%A&sort.values=%", "#&&page=x&example=&columns=no&split=no"]
)
def test_a_damaged_link_shows_the_page_as_it_is(open_page, hash):
    page = open_page(hash=hash)
    assert column(page, "#values", 1) == VALUES
    assert page.text_content("#where") == f"1–25 of {GROUPS * N} examples"


def test_light_and_dark_follow_the_system_until_one_is_chosen(open_page):
    light, page = open_page(color_scheme="light"), open_page(color_scheme="dark")
    dark = page.evaluate(PAPER)
    assert light.evaluate(PAPER) == "rgb(255, 255, 255)"
    assert max(map(int, dark[4:-1].split(","))) < 40
    page.click("#theme")
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    assert page.text_content("#theme") == "Dark colours"
    page.reload()
    page.wait_for_selector("#completions tbody tr")
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    page.click("#theme")
    assert page.evaluate(PAPER) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_paper(open_page, scheme):
    """At least 4.5 : 1, as WCAG's level AA asks for."""
    page = open_page(color_scheme=scheme)
    chosen = "p, a, li, h1, h2, h3, small, td, label, button:enabled, code, figure text"
    assert page.evaluate(CONTRAST, chosen) >= 4.5


def test_a_figure_in_the_dark_has_dark_paper(open_page):
    page = open_page(color_scheme="dark")
    fills = page.locator("figure svg path").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).fill)"
    )
    assert page.evaluate(PAPER) in fills
    assert "rgb(255, 255, 255)" not in fills


@pytest.mark.parametrize("width", [320, 400, 768])
def test_a_phone_scrolls_tables_and_figures_but_never_the_page(open_page, width):
    page = open_page(width=width, is_mobile=True, has_touch=True)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    page.locator("#completions td button").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#values .wide")
    assert box.evaluate("one => one.scrollWidth > one.clientWidth")
    cells = page.locator(".detail :is(td, th)")
    assert min(cells.evaluate_all("all => all.map((one) => one.clientWidth)")) >= 80
    if width < 640:
        assert page.locator("#completions").evaluate("one => one.scrollWidth <= innerWidth")
        page.locator("#completions th button").first.tap()
        assert page.get_attribute("#completions th", "aria-sort") == "ascending"


def test_the_first_column_stays_while_a_table_scrolls(open_page):
    page = open_page(width=400)
    cell = page.locator("#values tbody tr > *").first
    before = cell.bounding_box()["x"]
    page.locator("#values .wide").evaluate("one => { one.scrollLeft = 300 }")
    assert cell.bounding_box()["x"] == pytest.approx(before, abs=2)
