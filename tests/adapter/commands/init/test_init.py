"""`tidewatch-adapter init` as its users run it, with a real Prometheus."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.exporters.known_metrics import KnownMetric, MetricSubject, SeriesType
from adapter.foundation.exporters.table import KNOWN
from tests.support.forked import run
from tests.support.prometheus import scraped_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

POD = "web-7d9f8b6c5d-x2k4q"


def labels_of(known: KnownMetric) -> str:
    """Return labels as the exporter sets them."""
    fixed = re.findall(r'(\w+)="(\w+)"', known.matchers)
    if known.subject is MetricSubject.EXTERNAL:
        own = [(label, f"{label}-a") for label in known.labels]
    else:
        name = POD if known.subject is MetricSubject.POD else "web"
        own = [(known.namespace_labels[0], "shop"), (known.object_labels[0], name)]
    return ",".join(f'{label}="{value}"' for label, value in dict([*own, *fixed]).items())


def series_of_all() -> str:
    """Return an exporter's text with a series for each row of the table."""
    lines: dict[str, list[str]] = {}
    for known in KNOWN:
        lines.setdefault(known.series, []).append(f"{known.series}{{{labels_of(known)}}} 7")
    types = {known.series: known.type.value for known in KNOWN}
    text = [f"# TYPE {name} {types[name]}\n" + "\n".join(dict.fromkeys(each)) for name, each in lines.items()]
    return "\n".join(text) + "\n"


@pytest.fixture(scope="module")
def every_exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapedPrometheus]:
    """Yield a Prometheus that scrapes one series of each kind, twice so that rates exist."""
    with scraped_prometheus(
        tmp_path_factory.mktemp("prometheus"), series_of_all(), interval="1s", stamped=True
    ) as running:
        # Queries are evaluated at the last whole second, so the series must be older than that.
        running.wait_for("rate(http_requests_total[2m] offset 1s)")
        running.wait_for("go_goroutines offset 1s")
        yield running


@pytest.fixture(scope="module")
def written(every_exporter: ScrapedPrometheus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "new"
    ended = run("init", f"--prometheus-url={every_exporter.url}", f"--out={folder}")
    assert (ended.code, ended.error) == (0, "")
    assert f"{folder}/rules.yaml: {len(KNOWN)} rules" in ended.out
    return folder


def rules_in(folder: Path) -> dict[str, dict[str, Any]]:
    document = yaml.safe_load((folder / "rules.yaml").read_text())
    return {rule["name"]["as"]: rule for key in ("rules", "externalRules") for rule in document[key]}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_each_exporter_gets_a_rule_with_its_value(written: Path, known: KnownMetric) -> None:
    rule = rules_in(written)[known.name]
    text = (written / "rules.yaml").read_text()
    value = "0" if known.type is SeriesType.COUNTER else "7"

    assert rule["seriesQuery"].startswith(known.series)
    assert ("rate(" in rule["metricsQuery"]) is (known.type is SeriesType.COUNTER)
    comment = text[: text.index(f"name: {{as: {known.name}}}")].rpartition("# Now: ")[2]
    assert comment.startswith(f"{value} "), comment


def test_the_rules_pass_check_without_a_finding(written: Path, every_exporter: ScrapedPrometheus) -> None:
    ended = run("check", f"--config={written}/rules.yaml", f"--prometheus-url={every_exporter.url}")

    assert (ended.code, ended.error) == (0, "")
    assert ended.out.endswith("0 errors, 0 warnings\n")


def test_a_workload_gets_an_hpa_that_keeps_its_size(written: Path) -> None:
    hpa = yaml.safe_load((written / "hpa-web.yaml").read_text())

    assert sorted(path.name for path in written.iterdir()) == ["hpa-web.yaml", "rules.yaml"]
    assert hpa["metadata"] == {"name": "web", "namespace": "shop"}
    assert hpa["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (1, 2)
    assert hpa["spec"]["metrics"][0]["pods"] == {
        "metric": {"name": "websocket_connections"},
        "target": {"type": "AverageValue", "averageValue": "7"},
    }


def test_an_hpa_gets_the_values_of_the_comments(
    written: Path, every_exporter: ScrapedPrometheus, tmp_path: Path
) -> None:
    metadata = {"name": POD, "namespace": "shop"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    flags = (f"--config={written}/rules.yaml", f"--prometheus-url={every_exporter.url}", f"--objects={tmp_path}")
    selector = "--selector=consumergroup=consumergroup-a,topic=topic-a"
    of_pods = run("explain", "pods/websocket_connections", "-n", "shop", *flags, "-o", "json")
    of_queue = run("explain", "kafka_consumergroup_lag", "-n", "shop", selector, *flags, "-o", "json")

    for ended in (of_pods, of_queue):
        assert ended.code == 0, ended
        assert [value["value"] for value in json.loads(ended.out)["values"]] == [7]
