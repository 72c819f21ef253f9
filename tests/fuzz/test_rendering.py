"""Pages of hostile names and completions in Chromium: nothing runs, and the policy holds."""

from __future__ import annotations

import pytest

from smmd_bench.publishing.page import EXAMPLE_SCRIPTS as OF_EXAMPLES
from smmd_bench.publishing.page import SCRIPTS as OF_PAGE
from tests.chromium import CHROMIUM

from .corpus import files_of
from .outputs import page_of
from .texts import text_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
]
OWN = (*OF_PAGE, *OF_EXAMPLES)
SHOWN = "document.querySelector('#completions tbody').textContent"
SCRIPTS = "document.scripts.length"
ATTACKS = """() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    const image = document.createElement("img");
    image.setAttribute("onerror", "window.ran = true");
    image.src = "data:image/png;base64,AAAA";
    document.body.append(image);
    const link = document.createElement("a");
    link.href = "javascript:window.ran = true";
    document.body.append(link);
    link.click();
    fetch("http://localhost:1/").catch(() => null);
}"""


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the page of a text; gives the page, and what it did besides showing it."""
    context = browser.new_context()

    def show(text):
        file, did = tmp_path / "page.html", []
        file.write_text(page_of(text), encoding="utf-8", errors="replace")
        page = context.new_page()
        page.on("dialog", lambda dialog: (did.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda message: did.append(message.text))
        page.on("pageerror", lambda error: did.append(str(error)))
        page.on("request", lambda request: did.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("#completions tbody tr")
        did.remove(file.as_uri())
        return page, [what for what in did if not what.startswith("data:image/")]

    yield show
    context.close()


@pytest.mark.parametrize("file", files_of("page"), ids=lambda file: file.name)
def test_nothing_of_a_completion_runs(opened, file):
    text = text_of(file.read_bytes())
    page, did = opened(f"x{text}")
    assert did == []
    assert page.evaluate("window.ran") is None
    page.click("#completions td button")
    page.wait_for_selector(".detail code")
    assert did == []
    assert page.evaluate(SCRIPTS) == len(OWN) + 1
    word = max(text.replace("\x00", " ").split() or [""], key=len)
    assert word in page.evaluate(SHOWN)


def test_the_policy_stops_what_a_page_is_made_to_run(opened):
    page, _ = opened("a name")
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.evaluate(ATTACKS)
    page.wait_for_timeout(500)
    assert page.evaluate("window.ran") is None
    assert len([line for line in said if "Content Security Policy" in line]) >= 4
