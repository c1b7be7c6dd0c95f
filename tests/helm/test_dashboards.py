"""The dashboards: their JSON is that of their code, and no panel is empty when the programs are scraped."""

from __future__ import annotations

import itertools
import json
import math
from typing import TYPE_CHECKING

import pytest

from helm.tidewatch.dashboards.texts import DASHBOARDS, text_of
from tests.helm.chart import CHART
from tests.helm.scraped import SCRAPED, TOGETHER, queries
from tests.support.checkout import CHECKOUT
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

PATIENCE_SECONDS = 60.0


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_json_is_what_the_code_makes(name: str) -> None:
    committed = (CHART / "dashboards" / f"{name}.json").read_text()
    assert committed == text_of(DASHBOARDS[name]()), "run python -m helm.tidewatch.dashboards"


def test_no_other_file_ships() -> None:
    assert {path.stem for path in (CHART / "dashboards").glob("*.json")} == set(DASHBOARDS)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_has_a_name_of_its_own_and_its_panels_have_places_of_their_own(name: str) -> None:
    model = json.loads(text_of(DASHBOARDS[name]()))
    assert model["uid"].startswith("tidewatch-")
    cells = [
        (x, y)
        for panel in model["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    shown = [panel for panel in model["panels"] if panel["type"] != "row"]
    assert len({panel["title"] for panel in shown}) == len(shown)
    assert all(panel["description"].endswith(".") for panel in shown)


def empty(prometheus: ScrapedPrometheus, wanted: dict[str, str]) -> list[str]:
    """Return the panels without a finite value."""
    return [
        panel
        for panel, expr in wanted.items()
        if not any(math.isfinite(float(row["value"][1])) for row in prometheus.query(expr))
    ]


def test_every_dashboard_has_something_that_is_scraped() -> None:
    assert {name for names in TOGETHER for name in names} == set(SCRAPED) == set(DASHBOARDS)


@pytest.mark.parametrize("names", TOGETHER, ids=" and ".join)
def test_no_panel_is_empty(names: tuple[str, ...], tmp_path: Path) -> None:
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


def test_the_page_explains_every_panel_and_no_other() -> None:
    page = (CHECKOUT / "docs" / "dashboards.md").read_text()
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    titles = {panel["title"] for build in DASHBOARDS.values() for panel in build()["panels"] if panel["type"] != "row"}
    assert {row for row in rows if row != "panel"} == titles


def test_a_scatter_plot_joins_its_two_queries_to_one_table_whose_columns_it_shows() -> None:
    (panel,) = [panel for panel in DASHBOARDS["nodes"]()["panels"] if panel["type"] == "xychart"]
    assert [(target["format"], target["instant"]) for target in panel["targets"]] == [("table", True)] * 2
    join, organize = panel["transformations"]
    (series,) = panel["options"]["series"]
    shown = [series[axis]["matcher"]["options"] for axis in ("x", "y")]
    assert shown == list(organize["options"]["renameByName"].values())
    assert all(f"by ({join['options']['byField']})" in target["expr"] for target in panel["targets"])
    # Grafana would take the options of a panel without a version for old ones, and replace them.
    assert panel["pluginVersion"] >= "11.1"
