"""`tidewatch-recommender init` as its users run it, with a real Prometheus."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.exporters.known_metrics import KnownMetric, MetricSubject
from adapter.foundation.exporters.table import KNOWN
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from recommender.commands.init.kube_state_cluster import documents_of_kube_state, startups_of_kube_state
from tests.recommender.commands.init.series import NODES, PODS, history, text_of_now
from tests.support.annotated_answers import AnnotatedClient
from tests.support.forked import RECOMMENDER, run
from tests.support.prometheus import scraped_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

LOADS = tuple(known for known in KNOWN if known.subject is MetricSubject.POD and known.scales)
OTHERS = tuple(known for known in KNOWN if known.subject is not MetricSubject.POD)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapedPrometheus]:
    """Yield a Prometheus with connections of more than a day, add-ons, and kube-state-metrics' series."""
    folder = tmp_path_factory.mktemp("prometheus")
    with scraped_prometheus(folder, text_of_now(), history=history(), interval="1s", stamped=True) as running:
        running.wait_for("rate(http_requests_total[2m] offset 1s)")
        yield running


@pytest.fixture(scope="module")
def written(shop: ScrapedPrometheus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "new"
    ended = run("init", f"--prometheus-url={shop.url}", f"--out={folder}", program=RECOMMENDER)
    assert (ended.code, ended.error) == (0, "")
    return folder / "recommender.yaml"


def entries_of(file: Path) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in yaml.safe_load(file.read_text())["recommendations"]}


def comments_of(file: Path, entry: str) -> str:
    """Return the comments above an entry, joined into one line."""
    above = file.read_text().partition(f"\n- name: {entry}\n")[0].rpartition("\n\n")[2]
    return above.replace("\n# ", " ")


def test_run_accepts_the_file(written: Path) -> None:
    ended = run("run", "--validate", f"--config={written}", program=RECOMMENDER)

    assert ended.code == 0, ended.error
    assert ended.out.endswith("2 of 2 recommendations can be used\n")


def test_a_load_becomes_an_entry_with_the_load_per_replica_of_busy_hours(written: Path) -> None:
    web = entries_of(written)["web"]

    assert web["predictive"]["load"].startswith('sum(websocket_connections{namespace="shop",pod=~"web-')
    assert web["predictive"]["loadPerReplica"] == 1200
    assert web["targets"] == [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}]
    assert "95% of the last 1.2" in comments_of(written, "web")


def test_the_horizon_is_how_long_pods_took_to_become_ready(written: Path) -> None:
    assert entries_of(written)["web"]["predictive"]["horizon"] == "45s"


def test_each_entry_shows_its_current_value(written: Path) -> None:
    assert "Now: 2 replicas recommended, 2 running" in comments_of(written, "web")
    assert "Now: 3 replicas recommended, 2 running (linear/nodes 3: ceil(40 / 16)" in comments_of(written, "coredns")


def test_a_native_histogram_of_others_takes_no_cluster_away(shop: ScrapedPrometheus) -> None:
    """The query engine of Prometheus 3 leaves it out of a metric of kube-state-metrics, and says so in its answer."""
    with AnnotatedClient(PrometheusSettings(shop.url)) as client:
        kinds = Counter(document["kind"] for document in documents_of_kube_state(client))
        assert kinds == {"Node": NODES, "Deployment": 3}
        assert startups_of_kube_state(client)


def test_an_addon_is_never_made_smaller_than_it_is(written: Path) -> None:
    assert entries_of(written)["coredns"]["proportional"]["linear"]["min"] == 2


def test_entries_only_publish_metrics(written: Path) -> None:
    assert [entry["outputs"] for entry in entries_of(written).values()] == [["metric"], ["metric"]]


def test_a_setting_that_cannot_be_deduced_is_a_question_in_a_comment(written: Path) -> None:
    text = written.read_text()

    assert "api" not in entries_of(written)
    assert "# horizon: How long does a pod of shop/api take until it serves, such as 90s?" in text
    assert "#- name: api\n" in text


def test_a_file_is_never_overwritten(shop: ScrapedPrometheus, written: Path) -> None:
    before = written.read_text()
    ended = run("init", f"--prometheus-url={shop.url}", f"--out={written.parent}", program=RECOMMENDER)

    assert ended.code == 2
    assert "exists and is not overwritten" in ended.error
    assert written.read_text() == before


def test_node_groups_and_startup_times_come_from_objects_of_the_cluster(
    shop: ScrapedPrometheus, tmp_path: Path
) -> None:
    pool = {"cloud.google.com/gke-nodepool": "pool-1"}
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}]
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": pool, **created},
            "spec": {},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": ready},
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
        | {"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}, "status": {"replicas": 2}},
    ]
    objects += [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod, "namespace": "shop", "uid": pod, **created},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "conditions": ready},
        }
        for pod in PODS
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    flags = (f"--prometheus-url={shop.url}", f"--cluster={tmp_path}/cluster.json", f"--out={tmp_path}/out")
    ended = run("init", *flags, program=RECOMMENDER)
    assert (ended.code, ended.error) == (0, "")
    found = entries_of(tmp_path / "out" / "recommender.yaml")

    assert found["web"]["predictive"]["horizon"] == "30s"
    assert found["nodes"]["clusterSize"]["nodeGroups"] == {"byLabel": {"key": "cloud.google.com/gke-nodepool"}}
    # The cluster has no such Deployment, whatever the pods are called.
    assert "which does not exist" in (tmp_path / "out" / "recommender.yaml").read_text()


def test_recommend_decides_a_workload_without_a_file(shop: ScrapedPrometheus) -> None:
    flags = (f"--prometheus-url={shop.url}", "--workload=kube-system/coredns", "-o", "json")
    ended = run("recommend", *flags, program=RECOMMENDER)

    assert ended.code == 0, ended.error
    (item,) = json.loads(ended.out)["items"]
    assert (item["type"], item["replicas"], item["targets"][0]["current_replicas"]) == ("proportional", 3, 2)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--workload=shop/api",), "horizon cannot be deduced"),
        (("--workload=shop/none",), "no series of a known exporter is its load"),
        (("--workload=web",), "is not NAMESPACE/NAME"),
        (("--workload=",), "--workload: '' is not NAMESPACE/NAME"),
        (("--workload=shop/web", "--config=f"), "cannot be combined"),
        ((), "--prometheus-url is for --workload"),
    ],
)
def test_recommend_says_what_is_missing(shop: ScrapedPrometheus, flags: tuple[str, ...], message: str) -> None:
    ended = run("recommend", f"--prometheus-url={shop.url}", *flags, program=RECOMMENDER)

    assert ended.code == 2
    assert message in ended.error


def series_of_all() -> str:
    """Return one series of each known metric; number N belongs to the pods of a Deployment `wN`."""
    lines: dict[str, list[str]] = {}
    for number, known in enumerate(KNOWN):
        labels = dict(re.findall(r'(\w+)="(\w+)"', known.matchers))
        if known.subject is MetricSubject.POD:
            labels |= {"namespace": "shop", "pod": f"w{number}-7d9f8b6c5d-x2k4q"}
        else:
            labels |= dict.fromkeys((*known.namespace_labels, *known.object_labels, *known.labels), "a")
        text = ",".join(f'{label}="{value}"' for label, value in labels.items())
        lines.setdefault(known.series, []).append(f"{known.series}{{{text}}} 7")
    return "".join(
        f"# TYPE {known.series} {known.type.value}\n" + "".join(f"{line}\n" for line in dict.fromkeys(each))
        for known in {known.series: known for known in KNOWN}.values()
        for each in [lines[known.series]]
    )


@pytest.fixture(scope="module")
def text_of_every_exporter(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("every")
    with scraped_prometheus(folder, series_of_all(), interval="1s", stamped=True) as running:
        running.wait_for("rate(http_requests_total[2m] offset 1s)")
        ended = run("init", f"--prometheus-url={running.url}", f"--out={folder}/out", program=RECOMMENDER)
    assert (ended.code, ended.error) == (0, "")
    return (folder / "out" / "recommender.yaml").read_text()


@pytest.mark.parametrize("known", LOADS, ids=lambda known: known.name)
def test_the_load_of_each_exporter_is_recognised(text_of_every_exporter: str, known: KnownMetric) -> None:
    number = KNOWN.index(known)
    load = text_of_every_exporter.partition(f"- name: w{number}\n")[2].partition("load: ")[2].partition("\n")[0]

    assert load.startswith(('"sum(rate(' if known.type.value == "counter" else '"sum(') + known.series)


@pytest.mark.parametrize("known", OTHERS, ids=lambda known: known.name)
def test_known_series_that_are_not_the_load_of_one_workload_are_named(
    text_of_every_exporter: str, known: KnownMetric
) -> None:
    assert f"{known.exporter}: {known.series} (" in text_of_every_exporter.replace("\n# ", " ")


def test_init_reports_that_it_found_no_load(start_prometheus: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a fixture
    running = start_prometheus("nothing_known 1\n", interval="1s")
    running.wait_for("nothing_known")
    ended = run("init", f"--prometheus-url={running.url}", f"--out={tmp_path}/out", program=RECOMMENDER)

    assert (ended.code, ended.out) == (1, "")
    assert "no load of a workload, known add-on or provider's label of node groups was found" in ended.error
    assert "or name a cluster that has one of them with --kubeconfig or --cluster" in ended.error
    assert not (tmp_path / "out").exists()
