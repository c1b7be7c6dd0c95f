"""The recommender's page used in a real browser: by keyboard alone, wide and narrow, light and dark."""

from __future__ import annotations

import threading
from dataclasses import replace
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.publication import Publication
from recommender.decisions.record import Status, Step, TargetReference
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize, KeptNode
from recommender.page.handler import PageHandler
from tests.e2e.recommender.test_page_predictions import NOW, answering, day, record
from tests.e2e.support.browser import needs_browser
from tests.e2e.support.devtools import Browser, opened_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.decisions.record import Record

MANY = 5000
HOSTILE = "<img src=x onerror=document.title='stolen'>"
FOCUSED = """(() => {
    const found = document.activeElement;
    return found.getAttribute('name') || found.getAttribute('aria-label') || found.textContent.trim().slice(0, 40);
})()"""
OUTLINE = "getComputedStyle(document.activeElement).outlineStyle"
ROWS = "[...document.querySelectorAll('.index tbody tr:not(.note) th')].map(each => each.textContent)"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CELLS = "document.querySelectorAll('.index tbody tr:not(.note) > td').length"
BROKEN = """[...document.querySelectorAll('.index tbody tr:not(.note) > td, .steps tbody th, .reason')].filter(cell => {
    const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
    return text && [...text.data.matchAll(/[A-Za-z]+/g)].some(word => {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    });
}).map(cell => cell.textContent)"""

pytestmark = needs_browser


def one(number: int, status: Status = Status.OK, message: str = "") -> Record:
    target = TargetReference("apps/v1", "Deployment", f"team-{number % 37}", f"web-{number}")
    found = record(f"web-{number}", target, 100.0)
    return (
        replace(found, status=status, message=message)
        if status is Status.OK
        else replace(found, status=status, message=message, replicas=None, details=None, steps=(), binding=None)
    )


def served(records: tuple[Record, ...]) -> Iterator[str]:
    publication = Publication(leads=True, time=NOW, valid_until=NOW + 60, records=records)
    handler = PageHandler(lambda: publication, day, "1.0")
    with ThreadingHTTPServer(("127.0.0.1", 0), answering(handler)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join(10.0)


@pytest.fixture(scope="module")
def many() -> Iterator[str]:
    """Yield the page of 5,000 recommendations, of which some have no value."""
    yield from served(
        tuple(
            one(number, Status.ERROR, f"no series {HOSTILE}") if number % 100 == 7 else one(number)
            for number in range(MANY)
        )
    )


@pytest.fixture(scope="module")
def few() -> Iterator[str]:
    """Yield the page of three recommendations, of which one has no value."""
    yield from served((one(1), one(2), one(3, Status.ERROR, HOSTILE)))


@pytest.fixture(scope="module")
def long_names() -> Iterator[str]:
    """Yield the page of 61 recommendations, whose names need the whole width."""
    yield from served(tuple(replace(one(number), name=f"{'long-name-' * 9}{number}") for number in range(61)))


@pytest.fixture(scope="module")
def long_steps() -> Iterator[str]:
    """Yield the page of a recommendation with a step of a long name beside a long calculation."""
    steps = (Step("seasonal-held/forecast", 9, "ceil(214902 / 25000), " + "in 197 s: start-up 120 s, " * 9),)
    yield from served((replace(one(1), steps=steps),))


@pytest.fixture(scope="module")
def kept_nodes() -> Iterator[str]:
    """Yield the page of a size of the cluster with nodes that stay for a reason of a long name."""
    names = [f"worker-{number}" for number in range(9)]
    kept = tuple(KeptNode(name, "a", "NodeGroupMinSizeReached: its minimum is " + "9 " * 60) for name in names)
    answer = ClusterSizeAnswer(groups=(GroupSize("a", 9, 9, 9, 9, 10, "why"),), kept=kept)
    yield from served((replace(one(1), type="clusterSize", targets=(), replicas=None, details=answer),))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened_browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_one_of_five_thousand_recommendations_is_found_by_keyboard(browser: Browser, many: str) -> None:
    browser.open(many)
    found: list[str] = []
    while not found or found[-1] != "search":
        browser.press("Tab")
        found.append(browser.value(FOCUSED))
        assert browser.value(OUTLINE) == "solid", f"{found[-1]} does not show that it has the focus"
        assert len(found) < 10
    assert found == ["Skip to the recommendations", "All 5,000", "50 Error", "4,950 OK", "search"]
    browser.type("web-4321")
    browser.press("Enter")
    browser.wait_for_page("search=web-4321")
    assert browser.value("document.querySelectorAll('article').length") == 1
    assert "4321" in browser.value("document.querySelector('h2').textContent")
    assert browser.violations == []


def test_the_link_at_the_beginning_skips_to_what_is_decided(browser: Browser, many: str) -> None:
    browser.open(many)
    browser.press("Tab")
    browser.press("Enter")
    browser.wait_for_page("#main")
    browser.press("Tab")
    assert browser.value("document.querySelector('main').contains(document.activeElement)")


def test_errors_are_first_and_another_order_is_chosen_by_keyboard(browser: Browser, many: str) -> None:
    browser.open(many)
    assert browser.value(ROWS)[0] == "50 alike"
    browser.value("document.querySelector('[name=sort]').focus()")
    browser.press("ArrowDown")
    browser.press("Tab")
    assert browser.value(FOCUSED) == "Show"
    browser.press("Enter")
    browser.wait_for_page("sort=name")
    assert browser.value(ROWS)[:3] == ["web-0", "web-1", "web-2"]
    assert browser.value("document.querySelector('[aria-sort]').textContent") == "Recommendation"


def test_the_focus_passes_through_the_whole_page_and_leaves_it(browser: Browser, few: str) -> None:
    browser.open(few)
    focusable = "document.querySelectorAll('a, input:not([type=hidden]), select, button, summary, [tabindex=\"0\"]')"
    count = browser.value(f"{focusable}.length")
    seen = []
    for _ in range(count):
        browser.press("Tab")
        seen.append(browser.value(f"[...{focusable}].indexOf(document.activeElement)"))
    assert seen == list(range(count)), "in the order of the page, each once"
    browser.press("Tab")
    assert browser.value("document.activeElement === document.body || document.activeElement.className === 'skip'")


def test_no_word_is_broken_beside_a_long_name(browser: Browser, long_names: str) -> None:
    browser.resize(1280, dark=False)
    browser.open(long_names)
    # Each run of letters is one piece on the screen, if it is not broken over two lines.
    assert browser.value(CELLS) > 100
    assert browser.value(BROKEN) == []


@pytest.mark.parametrize("width", [400, 1280])
def test_no_word_of_a_step_is_broken_beside_a_long_calculation(browser: Browser, long_steps: str, width: int) -> None:
    browser.resize(width, dark=False)
    browser.open(long_steps)
    assert browser.value("document.querySelectorAll('.steps tbody th').length") == 1
    assert browser.value(BROKEN) == []
    assert browser.value(OVERFLOW) == 0


@pytest.mark.parametrize("width", [400, 1280])
def test_the_reason_for_which_nodes_stay_is_not_broken(browser: Browser, kept_nodes: str, width: int) -> None:
    browser.resize(width, dark=False)
    browser.open(kept_nodes)
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("document.querySelectorAll('.reason').length") == 1
    assert browser.value(BROKEN) == []
    assert browser.value(OVERFLOW) == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window_and_texts_can_be_read(
    browser: Browser, few: str, many: str, width: int, *, dark: bool
) -> None:
    browser.resize(width, dark=dark)
    for address in (few, many):
        browser.open(address)
        assert browser.value(OVERFLOW) == 0
        assert browser.value(LEAST_CONTRAST) >= 4.5, "of WCAG 2.2, 1.4.3"
        assert browser.value("document.title") != "stolen"


LEAST_CONTRAST = """(() => {
    const numbers = color => color.match(/[0-9.]+/g).map(Number);
    const light = color => {
        const [r, g, b] = numbers(color).map(each => each / 255)
            .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = element => {
        for (let each = element; each; each = each.parentElement) {
            const color = getComputedStyle(each).backgroundColor;
            if (numbers(color)[3] !== 0) return color;
        }
        return 'rgb(255, 255, 255)';
    };
    const ratios = [...document.querySelectorAll('h1, h2, a, p, td, th, dt, dd, .status, label, summary, figcaption')]
        .map(each => [light(getComputedStyle(each).color), light(behind(each))].sort())
        .map(([one, other]) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
    return Math.min(...ratios);
})()"""
"""The smallest contrast ratio between a text and its background, by the formula of WCAG 2.2."""
