"""The page of `explain` shows what the program prints: its transcripts and the messages of its table."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest

from tests.docs.blocks import blocks_of
from tests.support.checkout import CHECKOUT
from tests.support.forked import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.forked import Ended
    from tests.support.prometheus import ScrapedPrometheus

PAGE: Final = CHECKOUT / "docs/explain.md"
RULES: Final = """rules:
- seriesQuery: 'websocket_connections{namespace!="",pod!=""}'
  resources: {template: <<.Resource>>}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources: {template: <<.Resource>>}
  name: {as: http_requests_per_second}
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m]))'
- seriesQuery: 'queue_size_bytes{namespace!="",pod!=""}'
  resources: {template: <<.Resource>>}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""
SERIES: Final = """# TYPE websocket_connections gauge
websocket_connections{namespace="shop",pod="chat-0"} 18000
websocket_connections{namespace="shop",pod="chat-1"} 20500
# TYPE http_requests_total counter
http_requests_total{namespace="shop",pod="chat-0"} 7
"""
PODS: Final = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": f"chat-{index}"}}
    for index in range(3)
]
OF_A_SERVER: Final = ("asked", "series", "memory")
"""The steps that only a running server has."""
_SECONDS: Final = 30.0


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    found = start_prometheus(SERIES)
    found.wait_for('rate(http_requests_total{namespace="shop"}[2m])')
    return found


def transcript(metric: str) -> list[str]:
    """Return the lines that the page shows below the command that explains the metric."""
    (block,) = (each for each in blocks_of(PAGE) if each.text.startswith(f"$ tidewatch-adapter explain {metric} "))
    printed = re.sub(r"\A(.*\\\n)*.*\n", "", block.text)
    return [re.sub(r"\d+ s old\)", "N s old)", line) for line in printed.splitlines()]


def explained(metric: str, url: str) -> Ended:
    return run("explain", metric, "-n", "shop", "--config=rules.yaml", "--objects=objects", f"--prometheus-url={url}")


def lines_of(ended: Ended) -> list[str]:
    return re.sub(r"\d+ s old\)", "N s old)", ended.out).splitlines()


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": PODS}))


@pytest.mark.usefixtures("harness")
def test_what_a_command_without_a_server_prints_is_shown(prometheus: ScrapedPrometheus) -> None:
    ended = explained("pods/http_requests_per_second", prometheus.url)
    assert ended.code == 1
    assert lines_of(ended) == transcript("pods/http_requests_per_second")


@pytest.mark.usefixtures("harness")
def test_what_a_server_adds_is_the_only_difference(prometheus: ScrapedPrometheus) -> None:
    """The steps of a server name callers and times, so only their words are compared, with those in the code."""

    def common(lines: list[str]) -> list[str]:
        return [line.replace("/etc/tidewatch/", "") for line in lines if not is_of_a_server(line)]

    shown = transcript("pods/websocket_connections")
    assert common(lines_of(explained("pods/websocket_connections", prometheus.url))) == common(shown)
    source = source_of("adapter/metrics/readings/explain", "adapter/metrics/apis")
    words = [part for line in filter(is_of_a_server, shown) for part in words_of(line.split(maxsplit=2)[2])]
    assert [part for part in words if part not in source] == []


def is_of_a_server(line: str) -> bool:
    return len(line.split()) > 2 and line.split()[1] in OF_A_SERVER


def words_of(detail: str) -> list[str]:
    """Return the parts of a detail that are not values."""
    parts = re.split(r";|s?, |\bnamespace\b|(?:at )?\b20\d\d-\S+|\b\d+ s\b|\d+|system:\S+", detail)
    return [part.strip() for part in parts if part and part.strip()]


def source_of(*folders: str) -> str:
    return "".join(path.read_text() for folder in folders for path in sorted((CHECKOUT / folder).rglob("*.py")))


def test_each_message_of_the_table_is_one_of_the_code() -> None:
    source = source_of("adapter/metrics/apis/hints", "adapter/metrics/rulebook")
    rows = re.findall(r"^\| ([^|]+) \|", PAGE.read_text().partition("| message | meaning |")[2], re.MULTILINE)
    assert len(rows) > 5
    pieces = [piece.strip(" ,") for row in rows for piece in re.split(r"…\??|: | for |rules\[N\]|\(FILE:LINE\)", row)]
    assert [piece for piece in pieces if piece and piece not in source] == []
