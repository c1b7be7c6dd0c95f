"""MetricRules beside the rules of the chart: checked by the real API server, and served to their namespace alone."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.controlplane.client import ApiError
from tests.e2e.controlplane.cluster import KubectlError
from tests.e2e.support.installed import EXTERNAL, InstalledAdapter, installed_adapter, namespace_of_its_own, values_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(300)]

API: Final = "/apis/tidewatch.io/v1alpha1"
CRD: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/metricrules.tidewatch.io"
SUM: Final = "sum(<<.Series>>{<<.LabelMatchers>>})"
REPLICAS: Final = 2
MOST: Final = 12
"""The limit of objects in a namespace; the tests of one namespace make fewer."""


def metric_rule(namespace: str, called: str, api: str = "external", /, **rule: object) -> Document:
    stated = {"seriesQuery": "orders_waiting", "metricsQuery": SUM, "name": {"as": called}} | rule
    return {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "MetricRule",
        "metadata": {"namespace": namespace, "name": called},
        "spec": {"api": api, "rule": {key: value for key, value in stated.items() if value is not None}},
    }


@dataclass(frozen=True, slots=True)
class Teams:
    """An adapter that serves MetricRules, and two namespaces, each with a series of orders."""

    cluster: Cluster
    adapter: InstalledAdapter
    shop: str
    bank: str

    def values(self, namespace: str, metric: str) -> list[str] | int:
        """Return the values of an External metric, or the status of the answer."""
        reply = self.cluster.client.ask("GET", f"{EXTERNAL}/namespaces/{namespace}/{metric}")
        return [item["value"] for item in reply.document["items"]] if reply.status == 200 else reply.status

    def always(self, namespace: str, metric: str) -> object:
        """Return what all replicas answer, each connection going to one of them; None if they differ."""
        answers = [self.values(namespace, metric) for _ in range(10 * REPLICAS)]
        return answers[0] if all(answer == answers[0] for answer in answers) else None

    def wait_for(self, namespace: str, metric: str, wanted: object) -> None:
        self.cluster.wait_for(
            f"{wanted} of {namespace}/{metric}",
            lambda: self.always(namespace, metric) == wanted,
            why_not=lambda: self.values(namespace, metric),
        )

    def conditions(self, namespace: str, name: str) -> dict[str, tuple[str, str]]:
        """Return status and reason of each condition of an object."""
        found = self.cluster.client.get(f"{API}/namespaces/{namespace}/metricrules/{name}").get("status", {})
        return {each["type"]: (each["status"], each["reason"]) for each in found.get("conditions", [])}

    def wait_until(self, namespace: str, name: str, ready: tuple[str, str], refused: tuple[str, str]) -> None:
        wanted = {"Ready": ready, "Refused": refused}
        self.cluster.wait_for(
            f"conditions of {name}",
            lambda: self.conditions(namespace, name) == wanted,
            why_not=lambda: self.conditions(namespace, name),
        )


@pytest.fixture(scope="module")
def teams(cluster: Cluster, pod_metrics: PodMetrics, prometheus: ScrapedPrometheus) -> Iterator[Teams]:
    with ExitStack() as stack:
        shop = stack.enter_context(namespace_of_its_own(cluster, "shop"))
        bank = stack.enter_context(namespace_of_its_own(cluster, "bank"))
        for metric in ("orders_waiting", "queue_length"):
            for namespace, value in ((shop, 7.0), (bank, 500.0)):
                labels = {"namespace": namespace, "queue": "orders"}
                pod_metrics.set(metric, value, **labels)
                stack.callback(pod_metrics.set, metric, None, **labels)
        cluster.wait_for("the series", lambda: len(prometheus.query("orders_waiting")) == 2)
        stack.callback(cluster.client.delete, CRD)
        values = values_for(
            prometheus, REPLICAS, "--metrics-relist-interval=5s", f"--max-metric-rules-per-namespace={MOST}"
        ) | {"crds": {"enabled": True}}
        yield Teams(cluster, stack.enter_context(installed_adapter(cluster, values)), shop, bank)


def test_a_value_is_served_to_the_namespace_of_the_object_alone(teams: Teams) -> None:
    teams.cluster.apply(metric_rule(teams.shop, "waiting"))
    teams.wait_for(teams.shop, "waiting", ["7"])
    assert teams.always(teams.bank, "waiting") == 404
    teams.wait_until(teams.shop, "waiting", ("True", "Served"), ("False", "Accepted"))
    teams.cluster.kubectl("wait", "--for=condition=Ready", "metricrule/waiting", "--namespace", teams.shop)
    header, row = teams.cluster.kubectl("get", "metricrules", "--namespace", teams.shop).splitlines()
    assert header.split() == ["NAME", "METRIC", "STATUS", "SERIES", "AGE"]
    assert row.split()[:4] == ["waiting", "waiting", "Served", "1"]


def test_series_of_another_namespace_cannot_be_read(teams: Teams) -> None:
    foreign = f'{{namespace="{teams.bank}"}}'
    theirs = metric_rule(teams.shop, "theirs", seriesQuery=f"orders_waiting{foreign}")
    around = metric_rule(
        teams.shop, "around", metricsQuery=f"sum(<<.Series>>) + sum(orders_waiting{foreign} or vector(0))"
    )
    teams.cluster.apply(theirs, around)
    teams.wait_until(teams.shop, "theirs", ("False", "NoSeries"), ("False", "Accepted"))
    teams.wait_for(teams.shop, "theirs", ["7"])
    teams.wait_for(teams.shop, "around", ["7"])


def test_an_object_cannot_take_a_name_of_the_rule_files(teams: Teams) -> None:
    teams.wait_for(teams.shop, "queue_length", ["7"])
    tenfold = metric_rule(teams.shop, "tenfold", name={"as": "queue_length"}, metricsQuery=f"10 * {SUM}")
    teams.cluster.apply(tenfold)
    teams.wait_until(teams.shop, "tenfold", ("False", "NameTaken"), ("True", "NameTaken"))
    assert teams.always(teams.shop, "queue_length") == ["7"]
    assert teams.always(teams.bank, "queue_length") == ["500"]


def test_a_change_and_a_deletion_act_on_all_replicas(teams: Teams) -> None:
    teams.cluster.apply(metric_rule(teams.shop, "changing"))
    teams.wait_for(teams.shop, "changing", ["7"])
    teams.cluster.apply(metric_rule(teams.shop, "changing", metricsQuery=f"2 * {SUM}"))
    teams.wait_for(teams.shop, "changing", ["14"])
    teams.cluster.client.delete(f"{API}/namespaces/{teams.shop}/metricrules/changing")
    teams.wait_for(teams.shop, "changing", 404)


def test_faults_that_only_the_adapter_can_find_are_in_the_status(teams: Teams) -> None:
    teams.cluster.apply(metric_rule(teams.shop, "reaching", metricsQuery="info(<<.Series>>{<<.LabelMatchers>>})"))
    teams.wait_until(teams.shop, "reaching", ("False", "InvalidRule"), ("True", "InvalidRule"))
    found = teams.cluster.client.get(f"{API}/namespaces/{teams.shop}/metricrules/reaching")["status"]
    assert [finding["code"] for finding in found["findings"]] == ["not-confined"]
    assert found["observedGeneration"] == 1


def test_replicas_agree_on_a_status(teams: Teams) -> None:
    """Both replicas have found the same, and neither writes the status again."""
    teams.cluster.apply(metric_rule(teams.bank, "steady"))
    teams.wait_until(teams.bank, "steady", ("True", "Served"), ("False", "Accepted"))
    path = f"{API}/namespaces/{teams.bank}/metricrules/steady"
    version = teams.cluster.client.get(path)["metadata"]["resourceVersion"]
    # Another object that comes later is told of: in between, both replicas have looked at all.
    teams.cluster.apply(metric_rule(teams.bank, "later"))
    teams.wait_until(teams.bank, "later", ("True", "Served"), ("False", "Accepted"))
    found = teams.cluster.client.get(path)
    assert found["metadata"]["resourceVersion"] == version
    managers = {each["manager"] for each in found["metadata"]["managedFields"] if each.get("subresource") == "status"}
    assert managers == {"tidewatch-adapter"}


def test_a_third_object_is_beyond_the_quota_until_an_older_one_is_deleted(teams: Teams) -> None:
    with namespace_of_its_own(teams.cluster, "full") as full:
        names = [f"rule-{number:02}" for number in range(MOST + 1)]
        for name in names:
            # The last one is the youngest: ages are in seconds, and names decide between equal ones.
            teams.cluster.apply(metric_rule(full, name))
        refused = ("False", "TooManyRules"), ("True", "TooManyRules")
        teams.wait_until(full, names[-1], *refused)
        teams.cluster.client.delete(f"{API}/namespaces/{full}/metricrules/{names[0]}")
        teams.wait_until(full, names[-1], ("False", "NoSeries"), ("False", "Accepted"))


WRONG: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "an unknown key": ({"metricQuery": SUM}, 'unknown field "spec.rule.metricQuery"'),
    "a key without a meaning": ({"foreignNamespaces": "allow"}, 'unknown field "spec.rule.foreignNamespaces"'),
    "no query": ({"metricsQuery": None}, "spec.rule.metricsQuery: Required value"),
    "an empty query": ({"metricsQuery": " "}, "spec.rule.metricsQuery"),
    "another type": ({"seriesQuery": ["up"]}, "spec.rule.seriesQuery"),
    "a duration without a unit": ({"refresh": "30"}, "spec.rule.refresh"),
    "an answer that is none": ({"onNoData": "nothing"}, "spec.rule.onNoData"),
    "two conditions": ({"seriesFilters": [{"is": "a", "isNot": "b"}]}, "write exactly one of is and isNot"),
    "a slash": ({"name": {"as": "a/b"}}, "a metric's name has no slash"),
}


@pytest.mark.parametrize(("rule", "message"), WRONG.values(), ids=WRONG)
def test_the_api_server_refuses_what_the_reader_would(teams: Teams, rule: dict[str, Any], message: str) -> None:
    document = json.dumps(metric_rule(teams.shop, "wrong", **rule))
    with pytest.raises(KubectlError) as refused:
        teams.cluster.kubectl("create", "-f", "-", stdin=document)
    assert message in str(refused.value)


def test_the_api_server_wants_labels_of_a_custom_rule_and_takes_every_key(teams: Teams) -> None:
    with pytest.raises(KubectlError, match=r"a custom rule needs resources.overrides or resources.template"):
        teams.cluster.kubectl("create", "-f", "-", stdin=json.dumps(metric_rule(teams.shop, "wrong", "custom")))
    complete = metric_rule(
        teams.shop,
        "complete",
        "custom",
        seriesFilters=[{"is": "^orders"}],
        resources={"template": "<<.Resource>>", "overrides": {"app": {"group": "apps", "resource": "deployment"}}},
        onNoData=0,
        maxSampleAge="1m",
        refresh="30s",
        window="2m",
    )
    teams.cluster.kubectl("create", "-f", "-", stdin=json.dumps(complete))


def test_the_role_edit_of_a_namespace_writes_rules_and_no_statuses(teams: Teams) -> None:
    owner = teams.cluster.user("owner")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "owner", "namespace": teams.shop},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "owner"}],
    }
    teams.cluster.apply(binding)
    path = f"{API}/namespaces/{teams.shop}/metricrules"
    teams.cluster.wait_for("the right", lambda: owner.client.ask("GET", path).status == 200)
    owner.client.create(path, metric_rule(teams.shop, "owned"))
    with pytest.raises(ApiError) as refused:
        owner.client.merge(f"{path}/owned/status", {"status": {"metric": "mine"}})
    assert refused.value.status == 403
    with pytest.raises(ApiError):
        owner.client.create(f"{API}/namespaces/{teams.bank}/metricrules", metric_rule(teams.bank, "owned"))
