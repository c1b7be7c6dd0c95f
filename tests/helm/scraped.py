"""The programs behind the dashboards, scraped by a real Prometheus.

The recommender is represented by its own collectors behind an exporter.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, generate_latest

from adapter.foundation.service.runtime.followed_configuration import ReloadMetrics
from demo.machine.exporter import running_exporter
from demo.machine.files import replace_file
from demo.machine.prometheus import running_prometheus, target_files
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.kinds.proportional.sizes import ContainerSizes
from recommender.kinds.table import all_kinds
from recommender.leader_election.lease_events import LeaseMetrics
from recommender.outputs.metrics import RecommendationMetrics
from recommender.outputs.output_telemetry import RecommenderTelemetry
from recommender.outputs.scale_results import ScaleResult
from tests.adapter.commands.nodes.harness import POD, running_nodes
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, SECRET, SERVICE, apiservice
from tests.helm import loading
from tests.helm.nodes_sized import sized_record
from tests.helm.predicting import PredictionsAtWork
from tests.support.apiserver_kinds import APISERVICES
from tests.support.backfill import backfill
from tests.support.caller import Caller
from tests.support.checkout import CHECKOUT
from tests.support.object_apiserver import ObjectApiServer
from tests.support.prometheus import ScrapedPrometheus
from tests.support.serving import Trust, running_adapter
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from demo.machine.exporter import Exporter

TARGET: Final = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")


@contextmanager
def scraped_adapter(folder: Path) -> Iterator[tuple[ScrapedPrometheus, Callable[[int], None]]]:
    """Run a scraped adapter; yield the Prometheus, and a function that sends the adapter the Nth request."""
    trust = Trust.made_in(folder / "trust")
    rules = CHECKOUT / "rules" / "adapter" / "websocket.yaml"
    with ObjectApiServer() as cluster, _scraping(folder) as (prometheus, file):
        cluster.put("pods", "shop", "web-0", {"app": "web"})
        cluster.objects.put(APISERVICES, "", CUSTOM, apiservice(CUSTOM))
        flags = _adapter_flags(folder, cluster)
        with running_adapter(folder, trust, *flags, prometheus_url=prometheus.url, rules=rules) as adapter:
            _name_target(file, f"127.0.0.1:{adapter.plain_port}")
            with Caller(adapter.port, _client(cluster, trust)) as caller:

                def work(number: int) -> None:
                    connections = "NaN" if number % 20 == 0 else 5 + number % 40
                    prometheus.exporter.publish(
                        f'websocket_connections{{namespace="shop",pod="web-0"}} {connections}\n'
                    )
                    known = number % 10 != 0
                    caller.pods("websocket_connections" if known else "unknown", labelSelector="app=web")

                yield prometheus, work


@contextmanager
def scraped_recommender(folder: Path) -> Iterator[tuple[ScrapedPrometheus, Callable[[int], None]]]:
    """Run the recommender's collectors behind an exporter; yield the Prometheus, and a function that decides."""
    with running_exporter() as exporter, _scraping(folder) as (prometheus, file):
        _name_target(file, exporter.target)
        yield prometheus, _Recommending(exporter).work


@contextmanager
def scraped_predictions(folder: Path) -> Iterator[tuple[ScrapedPrometheus, Callable[[int], None]]]:
    """Run the collectors of forecasts behind an exporter; yield the Prometheus, and a function for the Nth forecast."""
    with running_exporter() as exporter, _scraping(folder) as (prometheus, file):
        _name_target(file, exporter.target)
        predicting = PredictionsAtWork(exporter)
        with closing(predicting):
            yield prometheus, predicting.work


@contextmanager
def scraped_nodes(folder: Path) -> Iterator[tuple[ScrapedPrometheus, Callable[[int], None]]]:
    """Run `nodes` on a cluster with twenty minutes of past; yield the Prometheus, and a function that asks `nodes`."""
    with (
        _scraping(folder, past=loading.series_at(int(time.time()))) as (prometheus, file),
        _nodes_at_work(folder, prometheus) as (target, work),
    ):
        _name_target(file, target)
        yield prometheus, work


@contextmanager
def scraped_together(folder: Path) -> Iterator[tuple[ScrapedPrometheus, Callable[[int], None]]]:
    """Run `nodes` and the recommender's collectors, each behind an exporter of its own, with one Prometheus."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(running_exporter()) for _ in range(2))
        prometheus, file = stack.enter_context(_scraping(folder, past=loading.series_at(int(time.time()))))
        target, ask = stack.enter_context(_nodes_at_work(folder, prometheus))
        _name_target(file, one.target, other.target, target)
        predicting = stack.enter_context(closing(PredictionsAtWork(other)))
        at_work = (_Recommending(one).work, predicting.work, ask)

        def work(number: int) -> None:
            for each in at_work:
                each(number)

        yield prometheus, work


SCRAPED: Final = {
    "adapter": scraped_adapter,
    "recommendations": scraped_recommender,
    "workload": scraped_predictions,
    "predictions": scraped_predictions,
    "nodes": scraped_nodes,
}
"""The function that runs the programs of each dashboard."""
TOGETHER: Final = {
    ("adapter",): scraped_adapter,
    ("recommendations", "workload", "predictions", "nodes"): scraped_together,
}
"""The function that runs the programs of several dashboards with one Prometheus, by the dashboards' names."""


class _Recommending:
    """The recommender's own collectors, behind an exporter."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._registry = CollectorRegistry(auto_describe=True)
        self._metrics = RecommendationMetrics(lambda: True, all_kinds())
        LeaseMetrics(self._registry, "tidewatch_recommender").show(lambda: True)
        self._telemetry = RecommenderTelemetry(self._registry)
        self._telemetry.add_scale_output("coredns")
        ReloadMetrics(self._registry, "tidewatch_recommender")

    def work(self, number: int) -> None:
        """Make a decision, sometimes a refused one, and expose it for a scrape."""
        replicas = 3 + number // 40
        present = replicas - (number % 40 < 20)
        action = TargetAction.NONE if present == replicas else TargetAction.REFUSED
        record = Record(
            name="coredns",
            type="proportional",
            time=time.time(),
            status=Status.HELD if number % 200 > 150 else Status.OK,
            message="",
            replicas=replicas,
            steps=(Step("linear/nodes", replicas, "ceil(nodes / 16)"), Step("linear/cores", 2.0, "ceil(32 / 16)")),
            binding="linear/nodes",
            details=ContainerSizes({"coredns": {"requests": {"cpu": "150m", "memory": "68Mi"}}}),
            targets=(TargetOutcome(TARGET, present, action, "HorizontalPodAutoscaler coredns", "", replicas),),
        )
        now = time.time()
        records = (record, sized_record(now, number))
        self._metrics.publish(Publication(leads=True, time=now, valid_until=now + 60.0, records=records))
        self._telemetry.record_poll(0.005, failures=0)
        self._telemetry.observe_decision("coredns", 0.002)
        self._telemetry.observe_decision("workers", 0.4)
        if action is TargetAction.REFUSED:
            self._telemetry.count_scale_call("coredns", ScaleResult.REFUSED)
            self._telemetry.count_event("created" if number % 40 == 0 else "suppressed")
        self._telemetry.count_memory_write("ok")
        self._exporter.publish((generate_latest(self._registry) + self._metrics.text()).decode())


def _scrape(job: str, file: Path) -> dict[str, Any]:
    """Return a scrape configuration whose target becomes known later."""
    return {"job_name": job, "scrape_interval": "1s", "file_sd_configs": [target_files(file)]}


def _name_target(file: Path, *targets: str) -> None:
    replace_file(file, json.dumps([{"targets": targets}]))


@contextmanager
def _nodes_at_work(folder: Path, prometheus: ScrapedPrometheus) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Run `tidewatch-adapter nodes`; yield its scrape address, and a function that asks it as the scheduler does."""
    configuration = folder / "scheduling.yaml"
    configuration.write_text(loading.SCHEDULING)
    flags = (
        f"--prometheus-url={prometheus.url}",
        f"--scheduling-config={configuration}",
        f"--state={folder / 'samples'}",
        "--refresh-interval=1s",
        "--plain-bind-address=127.0.0.1:0",
    )
    with running_nodes(folder / "nodes", *flags, objects=loading.objects()) as nodes:

        def work(_number: int) -> None:
            nodes.ask("/scheduler/filter", {"Pod": POD, "Nodes": None, "NodeNames": loading.NODES})
            nodes.prioritized(loading.NODES)

        yield f"127.0.0.1:{nodes.plain_port}", work


@contextmanager
def _scraping(folder: Path, past: Iterable[str] = ()) -> Iterator[tuple[ScrapedPrometheus, Path]]:
    """Run a Prometheus with an exporter, and one target whose address is written to the file later.

    `past` are samples that Prometheus already has.
    """
    file = folder / "targets.json"
    if lines := list(past):
        backfill(folder / "prometheus", "\n".join([*lines, "# EOF\n"]))
    with (
        running_exporter() as exporter,
        running_prometheus(
            folder / "prometheus", scrape_configs=[exporter.scrape_config(), _scrape("tidewatch", file)]
        ) as prometheus,
    ):
        yield ScrapedPrometheus(prometheus, exporter), file


def _adapter_flags(folder: Path, cluster: ObjectApiServer) -> tuple[str, ...]:
    """Return the flags with which all metrics are exposed: objects of a cluster, and a kept certificate."""
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


def _client(cluster: ObjectApiServer, trust: Trust) -> ssl.SSLContext:
    """Return the front proxy's TLS context, which trusts the CA bundle that the adapter has published."""
    found = until(lambda: cluster.objects.get_without_rights(APISERVICES, "", CUSTOM)["spec"].get("caBundle"))
    context = ssl.create_default_context(cadata=base64.b64decode(found).decode())
    context.check_hostname = False
    context.load_cert_chain(trust.front_proxy.certificate_file, trust.front_proxy.key_file)
    return context
