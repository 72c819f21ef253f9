"""The page in a real browser."""

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.contracts import Artefact
from smmd_bench.plugin_system.registry import load
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.page import render_page
from tests.chromium import CHROMIUM, chromium
from tests.publishing.published import Told, publish
from tests.runs import write_run

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
]
N, GROUPS, LOSSES = 40, 4, 4
VALUES = ["10 [9, 11]", "–", "−2.5 ± 1", "1,000", "9.5", "failed", "<0.001", "2.1M", "1.2e+39"]
RISING = ["−2.5 ± 1", "<0.001", "9.5", "10 [9, 11]", "1,000", "2.1M", "1.2e+39", "–", "failed"]
FALLING = ["1.2e+39", "2.1M", "1,000", "10 [9, 11]", "9.5", "<0.001", "−2.5 ± 1", "–", "failed"]


def values():
    """A table of every kind of cell, so wide that a phone has to scroll it."""
    table = pd.DataFrame({"Value": VALUES, "Name": [f"row {at}" for at in range(len(VALUES))]})
    table = table.assign(**{f"Column {at}": "a long text in a cell" for at in range(8)})
    table.attrs["bold"] = [(0, "Value")]
    return Artefact("A caption.", table)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "run"
    write_run(path, tasks=("arithmetic", "clock_time"), n=N, steps=20, resamples=20)
    publish(sb.read_run(path), [Told("values", values), load("reports", "arithmetic_operations")])
    return path


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def open_page(browser, folder):
    """Opens a page once its completions are shown; at the end nothing may have gone wrong."""
    contexts, wrong = [], []

    def opened(file=None, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda request: wrong.append(request.url) if "http" in request.url else 0
        )
        page.goto((file or folder / "reports" / "index.html").as_uri())
        page.wait_for_selector("#completions tbody tr")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def where(page):
    return str(page.text_content("#where"))


def column(page, table, number):
    cells = page.locator(f"{table} tbody tr > :nth-child({number})")
    return [str(text) for text in cells.all_text_contents()]


def wait_for(page, text):
    page.wait_for_function(
        "text => document.getElementById('where').textContent === text", arg=text
    )


def test_it_loads_without_an_error_or_a_request_and_shows_its_figure(open_page):
    page = open_page()
    assert page.title() == "run – smmd-bench"
    widths = page.eval_on_selector_all("figure img", "all => all.map(one => one.naturalWidth)")
    assert len(widths) == 1
    assert widths[0] > 500
    assert page.text_content("strong") == VALUES[0]
    assert where(page) == f"1–25 of {GROUPS * N} examples"


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


def test_filters_and_search_keep_what_fits_them(open_page, folder):
    page, found = open_page(), embedded_examples(sb.read_run(folder))
    rows, groups = found["rows"], found["groups"]
    page.select_option("#by-task", "arithmetic")
    wait_for(page, f"1–25 of {2 * N} examples")
    page.select_option("#by-loss", "ntl")
    page.select_option("#by-answer", "0")
    ntl = [group["losses"].index("ntl") for group in groups]
    asked = [row for row in rows if groups[row[0]]["task"] == "arithmetic"]
    wrong = [row for row in asked if row[5][ntl[row[0]]] == "0"]
    wait_for(page, f"1–25 of {len(wrong)} examples")
    page.select_option("#by-seed", "1")
    page.check("#differing")
    kept = [row for row in wrong if groups[row[0]]["seed"] == 1 and row[6]]
    wait_for(page, f"1–{len(kept)} of {len(kept)} examples")
    shown = [text.splitlines()[0] for text in column(page, "#completions", 5)]
    assert all(
        text.startswith(f"✗ {row[3][ntl[row[0]]]}") for text, row in zip(shown, kept, strict=True)
    )
    page.click("#filters button[type=reset]")
    wait_for(page, f"1–25 of {GROUPS * N} examples")
    prompt = next(row[1] for row in rows if groups[row[0]]["task"] == "arithmetic")
    page.fill("#search", prompt.splitlines()[0].upper())
    wait_for(page, "1–2 of 2 examples")
    page.select_option("#by-where", "completion")
    wait_for(page, "no example matches")


def test_a_category_is_filtered_over_every_loss_or_one(open_page, folder):
    page, rows = open_page(), embedded_examples(sb.read_run(folder))["rows"]
    letter = page.get_attribute("#by-category option:text-is('sign flip')", "value")
    some = sum(letter in row[4] for row in rows)
    page.select_option("#by-category", letter)
    wait_for(page, f"1–{min(some, 25)} of {some} examples")
    page.select_option("#by-loss", "ce")
    one = sum(row[4][1] == letter for row in rows)
    assert 0 < one < some
    wait_for(page, f"1–{one} of {one} examples")


def test_completions_sort_and_turn_their_pages(open_page):
    page = open_page()
    page.select_option("#by-task", "arithmetic")
    page.click("#completions th:nth-child(2) button")
    first = column(page, "#completions", 2)
    assert page.get_attribute("#completions th:nth-child(2)", "aria-sort") == "ascending"
    page.click("#next")
    assert where(page) == f"26–50 of {2 * N} examples"
    page.fill("#page-number", "99")
    page.keyboard.press("Enter")
    assert where(page) == f"76–{2 * N} of {2 * N} examples"
    page.click("#first")
    assert column(page, "#completions", 2) == first
    numbers = [float(sb.load_task("arithmetic").parse(text).value) for text in first]
    assert numbers == sorted(numbers)
    page.click("#completions th:nth-child(4) button")
    assert all(text.startswith("✓") for text in column(page, "#completions", 4))
    page.click("#completions th:nth-child(4) button")
    assert all(text.startswith("✗") for text in column(page, "#completions", 4))


def test_an_example_shows_its_picture(open_page):
    page = open_page()
    page.select_option("#by-task", "clock_time")
    wait_for(page, f"1–25 of {2 * N} examples")
    page.wait_for_function("document.querySelector('#completions img').naturalWidth > 100")
    assert page.locator("#completions img").count() == 25


def test_light_and_dark_follow_the_system_until_one_is_chosen(open_page):
    paper = "getComputedStyle(document.body).backgroundColor"
    light, page = open_page(color_scheme="light"), open_page(color_scheme="dark")
    dark = page.evaluate(paper)
    assert light.evaluate(paper) == "rgb(255, 255, 255)"
    assert max(map(int, dark[4:-1].split(","))) < 40
    page.click("#theme")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    assert page.text_content("#theme") == "Dark colours"
    page.reload()
    page.wait_for_selector("#completions tbody tr")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.click("#theme")
    assert page.evaluate(paper) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_its_paper(open_page, scheme):
    """At least 4.5 : 1, as WCAG's level AA asks for."""
    page = open_page(color_scheme=scheme)
    lowest = page.evaluate(
        """() => {
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
          const chosen = "p, a, li, h1, h2, h3, small, td, label, button:enabled, code";
          return Math.min(...[...document.querySelectorAll(chosen)].map((element) => {
            const [a, b] = [light(parts(getComputedStyle(element).color)), light(paper(element))];
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          }));
        }"""
    )
    assert lowest >= 4.5


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_scrolls_tables_and_figures_but_never_the_page(open_page, width):
    page = open_page(width=width, is_mobile=True, has_touch=True)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#values .wide")
    assert box.evaluate("one => one.scrollWidth > one.clientWidth")
    if width < 640:
        assert page.locator("#completions").evaluate("one => one.scrollWidth <= innerWidth")
        page.locator("#completions th button").first.tap()
        assert page.get_attribute("#completions th", "aria-sort") == "ascending"


def test_a_hundred_thousand_completions_are_searched_and_sorted(open_page, folder, tmp_path):
    run = sb.read_run(folder)
    small = embedded_examples(run)
    rows = [
        [group, f"{at} {prompt}", target, [f"{text} #{at}" for text in answers], *rest]
        for at in range(25_000)
        for group, prompt, target, answers, *rest in [small["rows"][at % len(small["rows"])]]
    ]
    file = tmp_path / "index.html"
    file.write_text(render_page(run, [], {**small, "rows": rows, "shown": 25_000 * LOSSES}))
    assert file.stat().st_size < 5_000_000
    page = open_page(file)
    assert "100,000 of" in page.text_content("#all-completions p")
    assert where(page) == "1–25 of 25,000 examples"
    assert page.locator("#completions tbody tr").count() == 25
    page.fill("#search", "#24999")
    wait_for(page, "1–1 of 1 examples")
    page.fill("#search", "")
    wait_for(page, "1–25 of 25,000 examples")
    page.click("#completions th:nth-child(1) button")
    page.click("#last")
    assert where(page) == "24,976–25,000 of 25,000 examples"
    assert column(page, "#completions", 1)[-1].startswith("24999 ")
