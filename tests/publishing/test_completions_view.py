"""The viewer of completions in a real browser."""

import csv
import io
import re

import pytest

import smmd_bench as sb
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.page import render_page
from tests.chromium import CHROMIUM

from .conftest import N

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
]
GROUPS, LOSSES = 4, 4
TARGET, FIRST = 5, 6
"""Columns, from 1: the target, and the first loss."""


@pytest.fixture(scope="module")
def run(folder):
    return sb.read_run(folder)


@pytest.fixture(scope="module")
def found(run):
    return embedded_examples(run)


def column(page, number):
    cells = page.locator(f"#completions tbody tr > :nth-child({number})")
    return [str(text) for text in cells.all_text_contents()]


def wait_for(page, text):
    page.wait_for_function(
        "text => document.getElementById('where').textContent === text", arg=text
    )


def place(found, row, loss):
    return found["groups"][row[0]]["losses"].index(loss)


def of_task(found, task):
    return [row for row in found["rows"] if found["groups"][row[0]]["task"] == task]


def test_filters_and_search_keep_what_fits_them(open_page, found):
    page = open_page()
    page.select_option("#by-task", "arithmetic")
    wait_for(page, f"1–25 of {2 * N} examples")
    page.select_option("#by-wrong", "ntl")
    asked = of_task(found, "arithmetic")
    wrong = [row for row in asked if row[5][place(found, row, "ntl")] == "0"]
    wait_for(page, f"1–25 of {len(wrong)} examples")
    page.select_option("#by-seed", "1")
    page.check("#differing")
    kept = [row for row in wrong if found["groups"][row[0]]["seed"] == 1 and row[6]]
    wait_for(page, f"1–{len(kept)} of {len(kept)} examples")
    shown = column(page, FIRST + 2)
    assert all(
        text.startswith(f"✗ {row[3][place(found, row, 'ntl')]}")
        for text, row in zip(shown, kept, strict=True)
    )
    page.click("#filters button[type=reset]")
    wait_for(page, f"1–25 of {GROUPS * N} examples")
    prompt = asked[0][1]
    page.fill("#search", prompt.splitlines()[0].upper())
    wait_for(page, "1–2 of 2 examples")
    page.select_option("#by-where", "completion")
    wait_for(page, "no example matches")


def test_one_loss_right_and_another_wrong_and_the_reverse(open_page, found):
    page = open_page()

    def kept(right, wrong):
        return sum(
            row[5][place(found, row, right)] == "1" and row[5][place(found, row, wrong)] == "0"
            for row in found["rows"]
        )

    page.select_option("#by-right", "smmd")
    page.select_option("#by-wrong", "ce")
    there, back = kept("smmd", "ce"), kept("ce", "smmd")
    assert 0 < back < there
    wait_for(page, f"1–{min(25, there)} of {there} examples")
    page.click("#swap")
    wait_for(page, f"1–{min(25, back)} of {back} examples")
    assert {text[0] for text in column(page, FIRST + 1)} == {"✓"}
    assert {text[0] for text in column(page, FIRST + 3)} == {"✗"}


def test_a_category_is_filtered_over_every_loss_or_one(open_page, found):
    page, rows = open_page(), found["rows"]
    letter = "abcdefghijkl"[found_category("sign_flip")]
    some = sum(letter in row[4] for row in rows)
    page.select_option("#by-category", "sign_flip")
    wait_for(page, f"1–{min(some, 25)} of {some} examples")
    page.select_option("#by-loss", "ce")
    one = sum(row[4][1] == letter for row in rows)
    assert 0 < one < some
    wait_for(page, f"1–{one} of {one} examples")


def found_category(name):
    from smmd_bench.scoring.categories import CATEGORIES

    return CATEGORIES.index(name)


def test_completions_sort_and_turn_their_pages(open_page):
    page = open_page()
    page.select_option("#by-task", "arithmetic")
    page.click(f"#completions th:nth-child({TARGET}) button")
    first = column(page, TARGET)
    heading = page.locator(f"#completions th:nth-child({TARGET})")
    assert heading.get_attribute("aria-sort") == "ascending"
    page.click("#next")
    assert page.text_content("#where") == f"26–50 of {2 * N} examples"
    page.fill("#page-number", "99")
    page.keyboard.press("Enter")
    assert page.text_content("#where") == f"76–{2 * N} of {2 * N} examples"
    page.click("#first")
    assert column(page, TARGET) == first
    numbers = [float(sb.load_task("arithmetic").parse(text).value) for text in first]
    assert numbers == sorted(numbers)
    page.click(f"#completions th:nth-child({FIRST + 1}) button")
    assert all(text.startswith("✓") for text in column(page, FIRST + 1))
    page.click(f"#completions th:nth-child({FIRST + 1}) button")
    assert all(text.startswith("✗") for text in column(page, FIRST + 1))


def test_the_address_is_a_link_to_the_view(open_page, folder):
    page = open_page()
    page.select_option("#by-wrong", "ntl")
    page.select_option("#by-task", "arithmetic")
    page.click(f"#completions th:nth-child({TARGET}) button")
    page.locator("#completions td button").nth(2).click()
    page.select_option("#split", "operations")
    page.click("details:has(#columns) summary")
    page.uncheck("#columns input[value=prompt]")
    page.click("#next")
    page.click("#first")
    page.click("#next")
    view = "['where', 'completions', 'slices'].map((id) => document.getElementById(id).textContent)"
    seen, address = page.evaluate(view), page.evaluate("location.hash")
    again = open_page(hash=address)
    assert again.evaluate(view) == seen
    assert seen[0].startswith("26–")
    assert "Prompt" not in again.locator("#completions thead").text_content()


def test_columns_are_chosen_and_the_example_its_task_and_its_seed_come_first(open_page):
    page = open_page()
    headings = page.locator("#completions th")
    assert headings.all_text_contents()[:3] == ["Example", "Task", "Seed"]
    assert headings.count() == FIRST - 1 + LOSSES
    page.click("details:has(#columns) summary")
    page.check("#columns input[value='at:operations']")
    page.uncheck("#columns input[value='loss:ntl']")
    assert "operations" in headings.all_text_contents()
    assert "NTL" not in headings.all_text_contents()
    page.click("#usual-columns")
    assert headings.count() == FIRST - 1 + LOSSES


def test_a_question_with_one_answer_is_not_asked(open_page):
    page = open_page()
    assert page.locator("#by-task").is_visible()
    assert not page.locator("#by-model").is_visible()


def test_an_example_shows_its_picture(open_page):
    page = open_page()
    page.select_option("#by-task", "clock_time")
    wait_for(page, f"1–25 of {2 * N} examples")
    page.wait_for_function("() => document.querySelector('#completions img').naturalWidth > 100")
    assert page.locator("#completions img").count() == 25


def test_an_example_opens_with_its_digits_and_the_command_that_shows_more(open_page, run, found):
    page = open_page()
    page.select_option("#by-task", "arithmetic")
    button = page.locator("#completions td button").first
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    row = of_task(found, "arithmetic")[0]
    detail, uid = page.locator(".detail"), row[7]
    probes = run.probes[(run.probes["uid"] == uid) & (run.probes["answer_digit"] >= 0)]
    places = probes[probes["loss"] == "smmd"].sort_values("digit")
    seed = found["groups"][row[0]]["seed"]
    p = places.loc[places["seed"] == seed, "p_target"].tolist()[:6]
    bars = detail.locator("tr:has-text('SMMD') .digits")
    shown = bars.evaluate_all("all => all.map((one) => one.nextSibling.textContent)")
    assert [float(text.split("=")[1]) for text in shown] == pytest.approx(p, abs=0.02)
    command = "smmd-bench show run --model builtin/tiny --task arithmetic"
    assert detail.locator("code").text_content() == f"{command} --seed {seed} --uid {uid}"
    button.click()
    assert page.locator(".detail").count() == 0


def test_the_command_of_an_example_is_copied(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#completions td button").first.click()
    page.click(".detail p button")
    page.wait_for_selector(".detail button:text-is('Copied')")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.text_content(".detail code")


def slices(page):
    """{slice: [[value, n] of each loss]} as the page shows them."""
    rows = page.locator("#slices tbody tr").all()
    return {
        row.locator("th").text_content(): [
            [float(x.replace(",", "")) for x in re.split(" ?n ", f" {text}")[:2]]
            for text in row.locator("td").all_text_contents()
        ]
        for row in rows
    }


def test_the_metrics_of_a_slice_are_those_of_its_examples(open_page, run, folder):
    page = open_page()
    whole = slices(page)
    scores = run.completions[run.completions["task"] == "arithmetic"]
    for at, loss in enumerate(("base", "ce", "ntl", "smmd")):
        mine = scores[scores["loss"] == loss]
        repeated = 2 if loss == "base" else 1  # it stands beside both seeds
        expected = [100 * mine["exact"].mean(), repeated * len(mine)]
        assert whole["arithmetic"][at] == pytest.approx(expected, abs=0.06)
    page.select_option("#split", "operations")
    page.select_option("#measure", "error")
    parts = slices(page)
    mine = scores[(scores["loss"] == "smmd") & (scores["operations"] == 2)]
    expected = [mine["error"].mean(), mine["error"].notna().sum()]
    assert parts["arithmetic · operations: 2"][3] == pytest.approx(expected, rel=0.006)
    page.select_option("#by-slice", "operations=2")
    assert slices(page) == {"arithmetic · operations: 2": parts["arithmetic · operations: 2"]}


def test_what_is_filtered_is_downloaded_as_csv(open_page, run, found):
    page = open_page()
    page.select_option("#by-task", "arithmetic")
    page.select_option("#by-wrong", "ce")
    kept = [r for r in of_task(found, "arithmetic") if r[5][place(found, r, "ce")] == "0"]
    with page.expect_download() as download:
        page.click("#download")
    text = download.value.path().read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(kept) * LOSSES
    assert {(row["example"], row["seed"]) for row in rows} == {
        (row[7], str(found["groups"][row[0]]["seed"])) for row in kept
    }
    known = run.completions.set_index(["loss", "uid"])["completion"]
    one = next(row for row in rows if row["loss"] == "base")
    assert one["completion"] == known.loc[("base", one["example"])]
    assert {row["exact"] for row in rows if row["loss"] == "ce"} == {"0"}


def test_a_hundred_thousand_completions_are_searched_and_sorted(open_page, run, found, tmp_path):
    rows = [
        [group, f"{at} {prompt}", target, [f"{text} #{at}" for text in answers], *rest]
        for at in range(25_000)
        for group, prompt, target, answers, *rest in [found["rows"][at % len(found["rows"])]]
    ]
    file = tmp_path / "index.html"
    many = {**found, "rows": rows, "digits": {}, "shown": 25_000 * LOSSES}
    file.write_text(render_page(run, [], many))
    assert file.stat().st_size < 5_000_000
    page = open_page(file)
    assert "100,000 of" in page.text_content("#all-completions p")
    wait_for(page, "1–25 of 25,000 examples")
    assert page.locator("#completions tbody tr").count() == 25
    page.fill("#search", "#24999")
    wait_for(page, "1–1 of 1 examples")
    page.fill("#search", "")
    wait_for(page, "1–25 of 25,000 examples")
    page.click(f"#completions th:nth-child({TARGET - 1}) button")
    page.click("#last")
    assert page.text_content("#where") == "24,976–25,000 of 25,000 examples"
    assert column(page, TARGET - 1)[-1].startswith("24999 ")
