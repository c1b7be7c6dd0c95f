"""The recommender's doctor against a scripted API server and a real Prometheus: each line in its good and bad state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from recommender.commands.doctor.leader import judge_lease
from recommender.commands.doctor.series import ExportedSeries, judge_series
from recommender.commands.main import main
from recommender.decisions.memory import Memory
from recommender.decisions.record import TargetReference
from recommender.running.memory.memory_document import encode_memory, encode_shard
from recommender.running.memory.store_protocol import memory_object_name, stored_name
from tests.recommender.commands.doctor.installation import (
    COREDNS,
    DRIVEN,
    ERROR,
    FOR_EACH,
    MEMORY,
    METRIC,
    NAMESPACE,
    OK,
    TARGETS,
    UNKNOWN,
    WARNING,
    Installation,
    lease,
    memory,
    metric,
    shard_of_memories,
)
from tests.recommender.configuration.files import entry
from tests.support.apiserver_kinds import CONFIG_MAPS, LEASES
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from adapter.foundation.reports.lines import CheckStatus

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")


def test_every_line_is_ok_if_nothing_is_wrong(installation: Installation) -> None:
    lines = installation.lines()
    assert {name: line for name, line in lines.items() if line.status is not OK} == {}
    assert "pod-a leads" in lines["leader"].message
    assert lines[f"target/coredns/{COREDNS}"].message == "it exists, and its scale has 2 replicas"
    assert "Prometheus has tidewatch_recommended_replicas" in lines[f"series/coredns/{COREDNS}"].message
    assert lines[f"adapter/coredns/{COREDNS}"].message == "the adapter serves recommended_replicas 3"
    assert lines["memory/coredns"].message.endswith("the last value was 3")
    assert "permission/get+update deployments.apps/scale in kube-system" in lines


def test_the_doctor_writes_only_access_reviews(installation: Installation) -> None:
    installation.lines()
    written = [
        request for request in installation.server.requests if request.verb not in {"GET", "list", "watch", "discover"}
    ]
    assert written
    assert {request.path for request in written} == {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"}


@pytest.mark.parametrize(
    ("verb", "plural", "name", "status", "lost"),
    [
        ("update", "deployments/scale", "get+update deployments.apps/scale in kube-system", ERROR, "scale calls"),
        ("get", "deployments", "get deployments.apps in kube-system", WARNING, "field managers"),
        ("create", "events", "create events in kube-system", WARNING, "events"),
        ("update", "configmaps", "get+update configmaps in monitoring", ERROR, "memories"),
        ("create", "leases", "create leases.coordination.k8s.io in monitoring", ERROR, "leader"),
        ("watch", "nodes", "list+watch nodes", ERROR, "nodes and cores"),
    ],
)
def test_a_missing_right_has_a_line(
    installation: Installation, verb: str, plural: str, name: str, status: CheckStatus, lost: str
) -> None:
    installation.server.objects.deny(verb, plural)
    found = installation.line(f"permission/{name}")
    assert found.status is status
    assert f"may not {verb}" in found.message
    assert lost in found.message.partition("affected: ")[2]
    assert found.fix.startswith("grant ")


def test_rights_are_reviewed_for_the_named_service_account(installation: Installation) -> None:
    name = "permission/list+watch nodes"
    flags = ("--service-account=monitoring/tidewatch",)
    refused = installation.lines(flags=flags)[name]
    assert refused.status is ERROR
    assert "the service account monitoring/tidewatch may not list, watch" in refused.message
    installation.server.reviews.allow("system:serviceaccount:monitoring:tidewatch", "*", "*")
    assert installation.lines(flags=flags)[name].status is OK


@pytest.mark.parametrize(
    ("document", "status", "message"),
    [
        (lease(1000.0), OK, "pod-a leads, and renewed the Lease ns/l 10 s ago"),
        (lease(900.0), ERROR, "pod-a renewed the Lease ns/l last 110 s ago: it has ended"),
        (lease(1200.0), WARNING, "190 s in the future"),
        ({"spec": {}}, ERROR, "nobody holds the Lease ns/l"),
        ({"spec": {"holderIdentity": "pod-a"}}, UNKNOWN, "no valid renewTime"),
    ],
)
def test_the_leader_is_named_with_the_age_of_its_lease(
    document: dict[str, Any], status: CheckStatus, message: str
) -> None:
    found = judge_lease("ns/l", document, 1010.0)
    assert found.status is status
    assert message in found.message


def test_a_missing_lease_is_an_error(installation: Installation) -> None:
    installation.server.objects.remove(LEASES, NAMESPACE, "tidewatch-recommender")
    assert "no process has ever led" in installation.line("leader").message


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("sum(load)", OK, "exactly one value, 3"),
        ("load", ERROR, "2 values"),
        ("nothing", ERROR, "no value at present"),
    ],
)
def test_a_query_needs_exactly_one_value(
    installation: Installation, query: str, status: CheckStatus, message: str
) -> None:
    found = installation.line(f"query/coredns/{query}", entry("coredns", TARGETS, kind=DRIVEN % query))
    assert found.status is status, found
    assert message in found.message


@pytest.mark.parametrize(
    ("rest", "statuses"), [("", [ERROR]), (", freezeUnless: sum(load)", [ERROR, OK]), (FOR_EACH, [])]
)
def test_the_load_of_a_prediction_is_checked_like_any_query(
    installation: Installation, rest: str, statuses: list[CheckStatus]
) -> None:
    kind = f"predictive: {{load: load, loadPerReplica: 10, horizon: 1m{rest}}}"
    lines = installation.lines(entry("coredns", kind=kind))
    assert [line.status for name, line in sorted(lines.items()) if name.startswith("query/")] == statuses


@pytest.mark.parametrize(
    ("age", "status", "message"),
    [(10.0, OK, "10 s old"), (200.0, WARNING, "200 s old"), (None, ERROR, "has no tidewatch_recommended_replicas")],
)
def test_exported_series_must_be_recent(age: float | None, status: CheckStatus, message: str) -> None:
    labels = {"recommendation": "coredns", "target_name": "coredns"}
    exported = ExportedSeries("series/coredns", "tidewatch_recommended_replicas", labels)
    scraped = [({"recommendation": "coredns", "target_name": "other"}, 1000.0)]
    scraped += [] if age is None else [(labels | {"target_kind": "Deployment"}, 1000.0 - age)]
    found = judge_series(exported, scraped, 1000.0)
    assert found.status is status
    assert message in found.message


SIZES = "proportional: {resources: {dns: {requests: {cpu: {base: 100m, step: 1m, nodesPerStep: 1}}}}}"
BOTH = SIZES.replace("{resources", "{linear: {nodesPerReplica: 1}, resources")


@pytest.mark.parametrize(
    ("kind", "series"),
    [
        (SIZES, {f"/{COREDNS}/resources": "resources"}),
        (BOTH, {f"/{COREDNS}": "replicas", f"/{COREDNS}/resources": "resources"}),
        ("clusterSize: {nodeGroups: {byLabel: {key: pool}}}", {"": "nodes"}),
        (f"predictive: {{load: load, loadPerReplica: 1, horizon: 1m{FOR_EACH}}}", {"": "replicas"}),
    ],
    ids=["sizes", "both", "clusterSize", "forEach"],
)
def test_each_kind_of_entry_is_checked_for_the_series_it_exports(
    installation: Installation, kind: str, series: dict[str, str]
) -> None:
    targets = [TARGETS] if kind in {SIZES, BOTH} else []
    lines = installation.lines(entry("other", *targets, kind=kind), entry("new", *targets, kind=kind))
    found = {name for name, line in lines.items() if name.startswith("series/") and line.status is OK}
    assert found == {f"series/other{rest}" for rest in series}
    for rest, name in series.items():
        line = lines[f"series/new{rest}"]
        assert (line.status, line.message) == (ERROR, f"Prometheus has no tidewatch_recommended_{name} for it")
    assert (f"adapter/other/{COREDNS}" in lines) is (kind == BOTH)


def test_a_prometheus_that_does_not_answer_is_an_error(installation: Installation) -> None:
    found = installation.lines(flags=("--prometheus-url=http://127.0.0.1:9",))["series"]
    assert found.status is ERROR
    assert "127.0.0.1:9" in found.message


def test_a_partial_answer_does_not_show_that_series_are_missing(installation: Installation) -> None:
    body = b'{"status":"success","warnings":["store-1 is away"],"data":{"resultType":"vector","result":[]}}'
    with raw_server(answering(body)) as server:
        lines = installation.lines(flags=(f"--prometheus-url={server.url}",))
    assert [name for name in lines if name.startswith("series")] == ["series"]
    assert lines["series"].status is UNKNOWN
    assert "store-1 is away" in lines["series"].message


NOT_FOUND = (404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such metric"})
FORBIDDEN = (403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no right"})
AWAY = (503, {"kind": "Status", "code": 503, "reason": "ServiceUnavailable", "message": "nobody"})


@pytest.mark.parametrize(
    ("answer", "outputs", "status", "message"),
    [
        (NOT_FOUND, "[metric]", ERROR, "no adapter serves"),
        (NOT_FOUND, "[metric, scale]", WARNING, "no adapter serves"),
        (FORBIDDEN, "[metric]", UNKNOWN, "forbidden"),
        (AWAY, "[metric]", ERROR, "does not answer"),
        (metric(), "[metric]", ERROR, "serves no recommended_replicas"),
        (metric("3", "4"), "[metric]", ERROR, "serves 2 values"),
        ((200, {"kind": "Other"}), "[metric]", ERROR, "not a list"),
    ],
)
def test_the_adapter_must_serve_one_value_for_each_target(
    installation: Installation, answer: tuple[int, Any], outputs: str, status: CheckStatus, message: str
) -> None:
    installation.server.answers[METRIC] = answer
    found = installation.line(f"adapter/coredns/{COREDNS}", entry("coredns", TARGETS, f"outputs: {outputs}"))
    assert found.status is status
    assert message in found.message


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        ({"linear": '{"nodesPerReplica": 16}'}, OK, "has the mode linear"),
        ({"linear": "{"}, ERROR, "not JSON"),
        ({}, ERROR, "exactly one key"),
        (None, ERROR, "does not exist"),
    ],
)
def test_a_config_map_with_parameters_must_parse(
    installation: Installation, data: dict[str, str] | None, status: CheckStatus, message: str
) -> None:
    if data is not None:
        installation.put(CONFIG_MAPS, "kube-system", "dns", {"kind": "ConfigMap", "data": data})
    kind = "proportional: {configMap: {namespace: kube-system, name: dns}}"
    found = installation.line("parameters/coredns", entry("coredns", TARGETS, kind=kind))
    assert found.status is status
    assert message in found.message


@pytest.mark.parametrize(
    ("document", "status", "message"),
    [
        (memory("{}"), WARNING, "cool-downs and holds are lost"),
        (memory(encode_memory("other", MEMORY)), WARNING, "belongs to recommendation 'other'"),
        (memory("", "somebody"), ERROR, "was not created by this program"),
    ],
)
def test_a_memory_must_load(
    installation: Installation, document: dict[str, Any], status: CheckStatus, message: str
) -> None:
    installation.put(CONFIG_MAPS, NAMESPACE, stored_name("coredns"), document)
    found = installation.line("memory/coredns")
    assert found.status is status
    assert message in found.message


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (None, OK, "nothing is stored yet"),
        (encode_shard("web", Memory(by_target={WEB: MEMORY}), 1), OK, "the last values of 1 target"),
        (b"{}", WARNING, "cool-downs and holds are lost"),
    ],
    ids=["none", "one target", "damaged"],
)
def test_the_memories_of_targets_are_read_in_their_own_config_maps(
    installation: Installation, content: bytes | None, status: CheckStatus, message: str
) -> None:
    if content is not None:
        installation.put(CONFIG_MAPS, NAMESPACE, memory_object_name("web", 0), shard_of_memories(content))
    kind = f"predictive: {{load: load, loadPerReplica: 1, horizon: 1m{FOR_EACH}}}"
    found = installation.line("memory/web", entry("web", kind=kind))
    assert found.status is status
    assert message in found.message


def test_an_entry_that_is_refused_has_a_line(installation: Installation) -> None:
    found = installation.line("configuration/web", entry("web", TARGETS, kind="proportional: {linaer: {}}"))
    assert found.status is ERROR
    assert "r.yaml:7: the key 'linaer'" in found.message


def test_without_a_cluster_checks_of_the_cluster_are_unknown(installation: Installation) -> None:
    installation.lines()
    installation.server.stop()
    lines = installation.lines()
    assert lines["kube-apiserver"].status is ERROR
    assert {lines[name].status for name in ("owners", "leader", f"target/coredns/{COREDNS}")} == {UNKNOWN}


def test_the_command_prints_a_report(installation: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = installation.folder / "recommender.yaml"
    configuration.write_text(installation.text())
    config = installation.server.kubeconfig(installation.folder / "config")
    with pytest.raises(SystemExit) as left:
        main(["doctor", f"--config={configuration}", f"--kubeconfig={config}", "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    assert (left.value.code, report["errors"], report["kind"]) == (0, 0, "DoctorReport")

    installation.server.answers[METRIC] = metric("3", "4")
    with pytest.raises(SystemExit) as left:
        main(["doctor", f"--config={configuration}", f"--kubeconfig={config}"])
    assert left.value.code == 1
    assert "error: adapter/coredns/Deployment kube-system/coredns: " in capsys.readouterr().out
