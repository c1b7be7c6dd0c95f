"""The dashboards: their JSON matches their code, and no panel is empty when the programs are scraped."""

from __future__ import annotations

import itertools
import json
import math
import re
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from PIL import Image

from adapter.foundation.promql.tree import SelectorNode, operands_of
from adapter.foundation.promql.tree_parser import parse_query
from adapter.nodes.extender.scores_page import scores_routes
from adapter.nodes.hotspots.hotspots_page import hotspots_routes
from adapter.nodes.watcher.handlers import watcher_routes
from docs.generate.reference.metric_page import exposed_metrics, labels_of
from helm.tidewatch.dashboards.panels import DOCS
from helm.tidewatch.dashboards.texts import DASHBOARDS, text_of
from helm.tidewatch.dashboards.variables import NODES_PAGE, PAGE
from recommender.page.selection import selection_of
from tests.helm.chart import CHART
from tests.helm.draw_dashboards import TITLES, titles_of
from tests.helm.grafana import as_sent, model_of, panels_of, queries
from tests.helm.scraped import SCRAPED, TOGETHER
from tests.support.checkout import CHECKOUT
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapter.foundation.promql.tree import Node
    from tests.support.prometheus import ScrapedPrometheus

PATIENCE_SECONDS = 60.0


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_json_is_what_the_code_makes(name: str) -> None:
    committed = (CHART / "dashboards" / f"{name}.json").read_text()
    assert committed == text_of(DASHBOARDS[name]()), "run python -m helm.tidewatch.dashboards"


def test_no_other_file_ships() -> None:
    assert {path.stem for path in (CHART / "dashboards").glob("*.json")} == set(DASHBOARDS)


def test_upgrades_replace_existing_dashboards() -> None:
    uids = {name: model_of(name)["uid"] for name in DASHBOARDS}
    assert uids == {name: f"tidewatch-{name}" for name in DASHBOARDS}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_places_and_numbers_of_their_own(name: str) -> None:
    top_level = model_of(name)["panels"]
    rows = [one for one in top_level if one["type"] == "row"]
    for shown in (top_level, *(row["panels"] for row in rows)):
        cells = [
            (x, y)
            for place in (one["gridPos"] for one in shown)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells))
        assert all(x < 24 for x, _ in cells)
    numbers = [one["id"] for one in (*rows, *panels_of(name))]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_says_what_it_shows_and_in_which_unit(name: str) -> None:
    shown = [*panels_of(name)]
    assert len({panel["title"] for panel in shown}) == len(shown)
    assert [panel["title"] for panel in shown if not panel["description"].endswith(".")] == []
    assert [panel["title"] for panel in shown if not panel["fieldConfig"]["defaults"]["unit"]] == []


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_first_row_is_of_statistics_and_at_most_twelve_panels_are_open(name: str) -> None:
    heading, *others = model_of(name)["panels"]
    assert heading["type"] == "row"
    first = [*itertools.takewhile(lambda panel: panel["type"] != "row", others)]
    assert {panel["type"] for panel in first} == {"stat"}
    limits = [panel["fieldConfig"]["defaults"]["thresholds"]["steps"] for panel in first]
    assert any(len(steps) > 1 for steps in limits)
    assert len([panel for panel in others if panel["type"] not in {"row", "stat"}]) <= 12


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_panel_of_present_numbers_sends_an_instant_query(name: str) -> None:
    """With a range query, the last value would outlive its series by hours."""
    shown = [panel for panel in panels_of(name) if panel["type"] == "stat"]
    assert [panel["title"] for panel in shown for target in panel["targets"] if target.get("instant") is not True] == []


@pytest.mark.parametrize("name", DASHBOARDS)
def test_legends_are_sorted_by_the_present_value(name: str) -> None:
    for panel in panels_of(name):
        if panel["type"] == "timeseries":
            legend = panel["options"]["legend"]
            assert (legend["sortBy"], legend["sortDesc"]) == ("Last *", True)


def links_of(value: object) -> Iterator[str]:
    """Yield the addresses anywhere in a dashboard."""
    if isinstance(value, dict):
        if isinstance(value.get("url"), str):
            yield value["url"]
        for one in value.values():
            yield from links_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from links_of(one)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {"", *(re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings)}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_link_to_the_documentation_leads_to_a_heading(name: str) -> None:
    docs = f"{DOCS}/"
    found = {url.removeprefix(docs).partition("#")[::2] for url in links_of(model_of(name)) if url.startswith(docs)}
    assert found
    assert {(page, anchor) for page, anchor in found if anchor not in anchors_of(CHECKOUT / "docs" / page)} == set()


@pytest.mark.parametrize("name", ["recommendations", "workload", "predictions"])
def test_every_link_to_the_page_names_an_entry_that_the_page_has(name: str) -> None:
    pages = {url for url in links_of(model_of(name)) if url.startswith("${page:raw}")}
    entries = {url.removeprefix("${page:raw}/") for url in pages} - {""}
    assert len(entries) == 1
    (entry,) = entries
    assert selection_of(re.sub(r"\$\{[^}]+\}", "chat", entry.removeprefix("?"))).name == "chat"
    (address,) = [one for one in model_of(name)["templating"]["list"] if one["name"] == "page"]
    assert address["query"] == PAGE


def test_every_link_to_the_nodes_server_is_one_of_its_routes() -> None:
    unused: Any = None
    routes = (
        *watcher_routes(unused, unused),
        *scores_routes(unused, unused),
        *hotspots_routes(unused, unused, unused),
    )
    prefix = "${page:raw}"
    found = {url.removeprefix(prefix) for url in links_of(model_of("nodes")) if url.startswith(prefix)}
    assert len(found) == 4
    assert {re.sub(r"\$\{[^}]+\}", "<host>", path) for path in found} <= {route.path for route in routes}


def test_the_chart_replaces_the_addresses_that_dashboards_have_without_it() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["dashboards"]["pages"]
    template = (CHART / "templates" / "dashboards.yaml").read_text()
    assert values == {"recommender": PAGE, "nodes": NODES_PAGE}
    assert all(f'replace "{url}"' in template for url in values.values())


def metrics_of(node: Node) -> set[str]:
    """Return the names of the metrics in a query."""
    if isinstance(node, SelectorNode):
        return {matcher.value for matcher in node.matchers if matcher.label == "__name__"}
    return {name for operand in operands_of(node) for name in metrics_of(operand)}


def label_values(prometheus: ScrapedPrometheus, label: str) -> set[str]:
    with urllib.request.urlopen(f"{prometheus.url}/api/v1/label/{label}/values", timeout=10) as response:
        return {*json.load(response)["data"]}


def unanswered_variables(prometheus: ScrapedPrometheus, name: str) -> list[str]:
    """Return the variables of a dashboard whose query names a label or series that nothing exports."""
    found = []
    for variable in model_of(name)["templating"]["list"]:
        if variable["type"] == "query":
            series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            rows = prometheus.query(as_sent(name, series))
            # Where a scrape sets these two, they are there; the Prometheus of this test sets one.
            if not rows or (label != "namespace" and not any(label in row["metric"] for row in rows)):
                found.append(variable["name"])
    return found


def empty(prometheus: ScrapedPrometheus, wanted: dict[str, str]) -> list[str]:
    """Return the panels without a finite value."""
    return [
        panel
        for panel, expr in wanted.items()
        if not any(math.isfinite(float(row["value"][1])) for row in prometheus.query(expr))
    ]


def misdescribed(prometheus: ScrapedPrometheus) -> list[str]:
    """Return the programs' series whose labels differ from those in docs/reference/metrics.md."""
    described = {metric.name: {*labels_of(metric)} for metric in exposed_metrics(CHECKOUT)}
    found = set()
    for row in prometheus.query('{job="tidewatch"}'):
        labels = {*row["metric"]} - {"__name__", "job", "instance", "le"}
        if row["metric"]["__name__"].startswith("tidewatch_readiness_"):
            # A scrape of the sidecar sets these.
            labels -= {"namespace", "pod"}
        name = re.sub(r"_(bucket|count|sum)$", "", row["metric"]["__name__"])
        if name.startswith("tidewatch_") and not name.endswith("_created") and labels != described.get(name):
            found.add(f"{name}: {sorted(labels)}")
    return sorted(found)


def test_every_dashboard_has_something_that_is_scraped() -> None:
    assert {name for names in TOGETHER for name in names} == set(SCRAPED) == set(DASHBOARDS)


@pytest.mark.parametrize("names", TOGETHER, ids=" and ".join)
def test_no_panel_is_empty_and_the_reference_has_the_labels_of_all_series(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    wanted = {f"{name}: {panel}": query for name in names for panel, query in queries(name).items()}
    numbers, missing = itertools.count(1), list(wanted)
    assert wanted
    with TOGETHER[names](tmp_path) as (prometheus, work):

        def no_panel_is_empty() -> bool:
            work(next(numbers))
            missing[:] = empty(prometheus, wanted)
            return not missing

        try:
            until(no_panel_is_empty, PATIENCE_SECONDS)
        except AssertionError:
            pytest.fail(f"these panels are empty: {missing}")
        named = {metric for query in wanted.values() for metric in metrics_of(parse_query(query))}
        assert named - label_values(prometheus, "__name__") == set()
        assert {name: unanswered_variables(prometheus, name) for name in names} == {name: [] for name in names}
        assert misdescribed(prometheus) == []


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_page_explains_every_panel_and_no_other(name: str) -> None:
    page = (CHECKOUT / "docs" / "dashboards.md").read_text()
    section = page.partition(f"\n## {name.capitalize()}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row != "panel"] == [panel["title"] for panel in panels_of(name)]
    assert f"(images/dashboard-{name}.png)" in section


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_picture_has_the_present_titles(name: str) -> None:
    with Image.open(CHECKOUT / "docs" / "images" / f"dashboard-{name}.png") as picture:
        drawn = picture.info.get(TITLES, "").split("\n")
    assert drawn == titles_of(name), "run: python -m tests.helm.draw_dashboards"


def test_a_scatter_plot_joins_its_two_queries_to_one_table_whose_columns_it_shows() -> None:
    (panel,) = [panel for panel in panels_of("nodes") if panel["type"] == "xychart"]
    assert [(target["format"], target["instant"]) for target in panel["targets"]] == [("table", True)] * 2
    join, organize = panel["transformations"]
    (series,) = panel["options"]["series"]
    shown = [series[axis]["matcher"]["options"] for axis in ("x", "y")]
    assert shown == list(organize["options"]["renameByName"].values())
    assert all(f"by ({join['options']['byField']})" in target["expr"] for target in panel["targets"])
    # Grafana would take the options of a panel without a version for old ones, and replace them.
    assert panel["pluginVersion"] >= "11.1"
