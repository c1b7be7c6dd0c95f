"""The rule files that ship mean what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapter.documents.load import load_documents
from adapter.objects.selectors import parse_selector
from adapter.rulebook.discover import static_metrics
from adapter.rulebook.parsing.parse import parse_rulebook
from adapter.rulebook.rendering.render import exact_query
from adapter.rulebook.requests import Asked

if TYPE_CHECKING:
    from adapter.objects.resources import ResolveResource
    from adapter.rulebook.model import Metric, Rulebook

FOLDER = Path(__file__).parents[2] / "rules" / "adapter"


def load(path: Path, resolve: ResolveResource) -> Rulebook:
    return parse_rulebook([load_documents(path.read_text("utf-8"), path.name)], resolve)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.name)
def test_nothing_is_wrong_or_doubtful_in_a_shipped_file(path: Path, resolve: ResolveResource) -> None:
    book = load(path, resolve)
    assert book.findings == ()
    assert book.rules


@pytest.fixture
def websocket_metrics(resolve: ResolveResource) -> dict[str, Metric]:
    book = load(FOLDER / "websocket.yaml", resolve)
    return {metric.qualified: metric for rule in book.rules for metric in static_metrics(rule, resolve)}


def test_websocket_connections_are_served_before_the_first_connection(websocket_metrics: dict[str, Metric]) -> None:
    assert set(websocket_metrics) == {
        "namespaces/websocket_connections",
        "pods/websocket_connections",
        "websocket_connections_by_namespace",
    }


def test_websocket_connections_of_pods(websocket_metrics: dict[str, Metric]) -> None:
    asked = Asked("chat", ("gateway-0", "gateway-1"), parse_selector(""))
    assert exact_query(websocket_metrics["pods/websocket_connections"], asked) == (
        'sum by (pod) (websocket_connections{namespace="chat",pod=~"gateway-0|gateway-1"})'
    )


def test_websocket_connections_of_a_namespace(websocket_metrics: dict[str, Metric]) -> None:
    asked = Asked("chat", (), parse_selector("service=gateway"))
    assert exact_query(websocket_metrics["websocket_connections_by_namespace"], asked) == (
        'sum(websocket_connections{service="gateway",namespace="chat"})'
    )
