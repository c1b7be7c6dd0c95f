"""The dashboards: their JSON is that of their code, and no panel is empty when the programs are scraped."""

from __future__ import annotations

import base64
import json
import math
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from demo.machine.exporter import Exporter, running_exporter
from demo.machine.files import replace_file
from demo.machine.prometheus import running_prometheus
from helm.tidewatch.dashboards.texts import DASHBOARDS, text_of
from recommender.decisions.record import Action, Record, Status, Step, TargetOutcome, TargetReference
from recommender.outputs.metrics import PublishedRecords, RecommendationCollector
from recommender.outputs.results import ScaleResult
from recommender.outputs.telemetry import RecommenderTelemetry
from tests.helm.chart import CHART, ROOT
from tests.identity.certificates.keeping_world import CUSTOM, SECRET, SERVICE, apiservice
from tests.support.apiserver_objects import APISERVICES
from tests.support.caller import Caller
from tests.support.object_apiserver import ObjectApiServer
from tests.support.prometheus import ScrapedPrometheus
from tests.support.serving import Trust, running_adapter
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE_SECONDS = 60.0
SERIES = 'websocket_connections{namespace="shop",pod="web-0"} 5\n'
VARIABLES = {"$namespace": ".*", "$job": ".*", "$recommendation": ".*", "$__rate_interval": "8s"}
TARGET = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")


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


def queries(name: str) -> dict[str, str]:
    """Return the queries of a dashboard by panel, with every variable at its default."""
    found: dict[str, str] = {}
    for panel in DASHBOARDS[name]()["panels"]:
        for target in panel.get("targets", ()):
            expr: str = target["expr"]
            for variable, value in VARIABLES.items():
                expr = expr.replace(variable, value)
            found[f"{panel['title']} {target['refId']}"] = expr
    return found


def scrape(job: str, file: Path) -> dict[str, Any]:
    """Return a scrape configuration whose target is known only later."""
    return {"job_name": job, "scrape_interval": "1s", "file_sd_configs": [{"files": [str(file)]}]}


def name_target(file: Path, target: str) -> None:
    replace_file(file, json.dumps([{"targets": [target]}]))


def empty(prometheus: ScrapedPrometheus, wanted: dict[str, str]) -> list[str]:
    """Return the panels without a finite value."""
    return [
        panel
        for panel, expr in wanted.items()
        if not any(math.isfinite(float(row["value"][1])) for row in prometheus.query(expr))
    ]


def fill(prometheus: ScrapedPrometheus, name: str, work: Callable[[], None]) -> None:
    """Let the program work until no panel is empty."""
    wanted, end = queries(name), time.monotonic() + PATIENCE_SECONDS
    assert wanted
    while missing := empty(prometheus, wanted):
        assert time.monotonic() < end, f"these panels of {name} are empty: {missing}"
        work()
        time.sleep(0.2)


@contextmanager
def scraping(folder: Path) -> Iterator[tuple[ScrapedPrometheus, Path]]:
    """Run a Prometheus with an exporter of SERIES, and one target whose name is to be written to the file."""
    file = folder / "targets.json"
    with (
        running_exporter(SERIES) as exporter,
        running_prometheus(
            folder / "prometheus", scrape_configs=[exporter.scrape_config(), scrape("tidewatch", file)]
        ) as prometheus,
    ):
        yield ScrapedPrometheus(prometheus, exporter), file


def adapter_flags(folder: Path, cluster: ObjectApiServer) -> tuple[str, ...]:
    """Return the flags with which everything is exposed: objects of a cluster, and a certificate of its own."""
    kubeconfig = cluster.kubeconfig(folder / "config")
    return (
        "--objects=",
        f"--lister-kubeconfig={kubeconfig}",
        f"--kubeconfig={kubeconfig}",
        "--tls-cert-file=",
        "--tls-private-key-file=",
        f"--cert-dir={folder / 'certificates'}",
        f"--serving-secret={SECRET}",
        f"--service={SERVICE}",
        f"--apiservice={CUSTOM}",
        "--refresh-interval=1s",
        "--metrics-relist-interval=2s",
    )


def client(cluster: ObjectApiServer, trust: Trust) -> ssl.SSLContext:
    """Return the front proxy's way to the adapter, which trusts what the adapter has published."""
    found = until(lambda: cluster.objects.get_without_rights(APISERVICES, "", CUSTOM)["spec"].get("caBundle"))
    context = ssl.create_default_context(cadata=base64.b64decode(found).decode())
    context.check_hostname = False
    context.load_cert_chain(trust.front_proxy.certificate_file, trust.front_proxy.key_file)
    return context


def test_no_panel_of_the_adapter_is_empty(tmp_path: Path) -> None:
    trust = Trust.made_in(tmp_path / "trust")
    rules = ROOT / "rules" / "adapter" / "websocket.yaml"
    with ObjectApiServer() as cluster, scraping(tmp_path) as (prometheus, file):
        cluster.put("pods", "shop", "web-0", {"app": "web"})
        cluster.objects.put(APISERVICES, "", CUSTOM, apiservice(CUSTOM))
        flags = adapter_flags(tmp_path, cluster)
        with running_adapter(tmp_path, trust, *flags, prometheus_url=prometheus.url, rules=rules) as adapter:
            name_target(file, f"127.0.0.1:{adapter.plain_port}")
            with Caller(adapter.port, client(cluster, trust)) as caller:

                def ask() -> None:
                    caller.pods("websocket_connections", labelSelector="app=web")

                fill(prometheus, "adapter", ask)


class Recommending:
    """The recommender's own collectors, behind an exporter."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._registry = CollectorRegistry(auto_describe=True)
        self._published = PublishedRecords()
        self._registry.register(RecommendationCollector(self._published, lambda: True))
        self._telemetry = RecommenderTelemetry(self._registry)
        self._telemetry.scale_output_added("coredns")

    def work(self) -> None:
        """Decide once, be refused, and be scraped with that."""
        record = Record(
            name="coredns",
            type="proportional",
            time=time.time(),
            status=Status.OK,
            message="",
            replicas=11,
            steps=(Step("linear/nodes", 11.0, "ceil(176 / 16)"),),
            binding="linear/nodes",
            targets=(TargetOutcome(TARGET, 3, Action.REFUSED, "HorizontalPodAutoscaler coredns"),),
        )
        self._published.publish([record])
        self._telemetry.poll(succeeded=True)
        self._telemetry.decision(0.002)
        self._telemetry.scale_call("coredns", ScaleResult.REFUSED)
        self._exporter.publish(generate_latest(self._registry).decode())


def test_no_panel_of_the_recommender_is_empty(tmp_path: Path) -> None:
    with running_exporter() as exporter, scraping(tmp_path) as (prometheus, file):
        name_target(file, exporter.target)
        fill(prometheus, "recommendations", Recommending(exporter).work)
