"""The site of the documentation is built strictly and has every page, and its search finds words."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from adapter.commands.table import COMMANDS
from docs.generate.__main__ import reference_pages
from docs.generate.reference.flag_pages import flags_page
from docs.generate.reference.message_page import messages_of
from docs.generate.site_hooks import OUTSIDE, REPOSITORY, links_for_the_site, pipes_for_the_site
from tests.docs.blocks import PAGES, blocks_of
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

DOCS: Final = CHECKOUT / "docs"
_BUILD_SECONDS: Final = 110


def build(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site as `make docs` does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--config-file", configuration, "--site-dir", site],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )


def test_the_strict_build_passes_and_the_site_has_every_page_and_asks_no_other_host(tmp_path: Path) -> None:
    done = build(CHECKOUT / "mkdocs.yml", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in PAGES if DOCS in path.parents}
    assert {str(page) for page in pages if not (tmp_path / page).is_file()} == set()
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"')
    asked = {match for page in tmp_path.rglob("*.html") for match in loaded.findall(page.read_text())}
    assert asked == set()
    assert_blocks_are_shown(tmp_path)
    assert_search_finds(tmp_path)


def assert_blocks_are_shown(site: Path) -> None:
    """Check that each code block of a page is a block on the site, and has not run into the text around it."""
    shown = {
        path.relative_to(DOCS): (site / path.relative_to(DOCS).with_suffix(".html")).read_text().count("<pre")
        for path in PAGES
        if DOCS in path.parents
    }
    assert {page: count for page, count in shown.items() if count != len(list(blocks_of(DOCS / page)))} == {}


def assert_search_finds(site: Path) -> None:
    """Check that the search index leads from these words to the places that explain them."""
    index = json.loads((site / "search" / "search_index.json").read_text())
    texts = {entry["location"]: f"{entry['title']} {entry['text']}" for entry in index["docs"]}
    for words, page in (
        ("NamespaceDeletionDiscoveryFailure", "operating.html"),
        ("is not a regular expression of RE2", "reference/messages.html"),
        ("--metrics-relist-interval", "reference/tidewatch-adapter.html"),
        ("skipNodesWithLocalStorage", "reference/recommender-configuration.html"),
        ("tidewatch_recommended_replicas", "reference/metrics.html"),
        ("TidewatchRuleFailing", "runbooks.html"),
    ):
        assert [place for place, text in texts.items() if words in text and place.startswith(page)], words
    assert not [place for place in texts if place.startswith("rooms.html")]


def test_a_dead_link_and_a_page_that_nothing_leads_to_fail_the_build(tmp_path: Path) -> None:
    configuration = (CHECKOUT / "mkdocs.yml").read_text().partition("\nnav:\n")[0]
    hooks = str(DOCS / "generate" / "site_hooks.py")
    configuration = configuration.replace("docs/generate/site_hooks.py", hooks)
    (tmp_path / "mkdocs.yml").write_text(f"{configuration}\nnav: [index.md]\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[a](gone.md) [b](lost.md#c) [d](#here) [e](../gone.py)\n")
    (tmp_path / "docs" / "lost.md").write_text("# Lost\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert [
        each for each in ("'gone.md'", "'lost.md#c'", "'#here'", "'../gone.py'", "- lost.md") if each not in said
    ] == []


def test_the_reference_is_what_the_code_says() -> None:
    written = {path.name: path.read_text() for path in (DOCS / "reference").iterdir()}
    made = reference_pages()
    assert written.keys() == made.keys()
    assert [name for name, text in made.items() if written[name] != text] == [], "run: make docs"


def test_flags_of_a_command_without_effect_for_the_same_reason_share_a_row() -> None:
    sections = flags_page(COMMANDS).split("\n## ")
    reasons = [re.findall(r"(?:Accepted, without effect|Not supported): (.*)", section) for section in sections]
    assert max(map(len, reasons)) > 5
    assert [each for each in reasons if len(each) != len(set(each))] == []


def test_the_reference_of_metrics_has_each_metric_that_pages_alerts_and_dashboards_name() -> None:
    page = (DOCS / "reference" / "metrics.md").read_text()
    known = set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE))
    sources = [*DOCS.glob("*.md"), *(CHECKOUT / "rules").rglob("*.yaml")]
    pattern = re.compile(r"\b(?:tidewatch_\w+|metrics_apiserver_\w+|prometheus_adapter_prometheus\w+)(?=[{`\[ (=)])")
    named = {name for path in sources for name in pattern.findall(path.read_text())}
    assert len(named) > 60
    assert {name for name in named if re.sub(r"_(bucket|sum|count)$", "", name) not in known} == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise Error(f"{place}: the file is empty: write {what}")', [("the file is empty", "write …")]),
        ('raise Error(f"--limit={text}: write 1 or more")', [("--limit=…", "write 1 or more")]),
        ('raise Error(f"{path}: check the name and the namespace")', [("…", "check the name and the namespace")]),
        ('raise Error(f"{path}: write {one}")', []),
        ('raise Error(f"the limit is {text}: it must be positive")', [("the limit is …", "it must be positive")]),
        ('raise Error(f"{path}:1: the file is empty: write a header")', [("the file is empty", "write a header")]),
        ('problem(node, "it is cut off", "write it again")', [("it is cut off", "write it again")]),
        ('Scalar("true or false", "write true or false")', [("… is not true or false", "write true or false")]),
        ('log.warning("%s: the file has changed: check it again", name)', [("the file has changed", "check it again")]),
        ('Flag("one", TEXT, "The first address: use only that one.")', []),
        ('"""It says what it is: write it down"""', []),
        ('raise Error("it is not known: nothing helps")', []),
    ],
)
def test_messages_are_read_with_their_repairs(source: str, found: list[tuple[str, str]]) -> None:
    assert list(messages_of(source)) == found


@pytest.mark.parametrize(
    ("link", "on_the_site"),
    [
        ("[a](rules.md#top)", "[a](../rules.md#top)"),
        ("[a](../helm/tidewatch/README.md)", "[a](../chart.md)"),
        ("[a](../../rules/adapter)", f"[a]({REPOSITORY}/tree/main/rules/adapter)"),
        ("[a](../../Makefile)", f"[a]({REPOSITORY}/blob/main/Makefile)"),
        ("[a](../../gone.md)", "[a](../../gone.md)"),
        ("[a](https://example.com/x.md) [b](#here)", "[a](https://example.com/x.md) [b](#here)"),
        ("`[a](../../Makefile)`", "`[a](../../Makefile)`"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_into_the_repository(link: str, on_the_site: str) -> None:
    pages = frozenset({"rules.md", *OUTSIDE.values()})
    source = link.replace("(rules.md", "(../rules.md").replace("(../helm", "(../../helm")
    assert links_for_the_site(source, "tutorials/a.md", pages) == on_the_site


def test_code_in_tables_shows_pipes_as_they_are() -> None:
    page = "| `a\\|b` | c \\| d |\n`a\\|b`"
    assert pipes_for_the_site(page) == "| `a|b` | c \\| d |\n`a\\|b`"


def luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb`, as WCAG 2.2 defines it."""
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        pytest.param("--md-primary-fg-color", "#ffffff", id="links, and texts on the header"),
        pytest.param("--md-default-fg-color--light", "#f5f5f5", id="pale texts, also in code"),
    ],
)
def test_texts_of_the_light_site_have_the_contrast_of_wcag(name: str, beside: str) -> None:
    stylesheet = (DOCS / "stylesheets" / "site.css").read_text()
    (colour,) = re.findall(rf"{name}: (#[0-9a-f]{{6}});", stylesheet)
    darker, lighter = sorted([luminance(colour), luminance(beside)])
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5
