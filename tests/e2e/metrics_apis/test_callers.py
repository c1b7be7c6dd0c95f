"""Callers that are served: through the real aggregator, and directly at a replica in its pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
import urllib3.exceptions

from demo.machine.certificates import Authority
from tests.e2e.controlplane.credentials import FRONT_PROXY_NAME
from tests.e2e.support.asked_adapter import METRIC, AskedAdapter, asked_adapter, wrong_with
from tests.e2e.support.signed_tokens import Lifetime, signed_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.certificates import KeyPair
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.support.plain_client import PlainClient
    from tests.support.prometheus import ScrapedPrometheus

pytestmark = pytest.mark.needs_pods

FORGED: Final = {"X-Remote-User": "e2e-admin", "X-Remote-Group": "system:masters"}
REQUESTS: Final = "tidewatch_adapter_requests_total{"
HEALTH: Final = ("/healthz", "/livez", "/readyz")


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, pod_metrics: PodMetrics, prometheus: ScrapedPrometheus) -> Iterator[AskedAdapter]:
    """Yield an adapter of one replica, so that the next request meets what it remembers of a caller."""
    with asked_adapter(cluster, pod_metrics, prometheus, 1) as running:
        yield running


@pytest.fixture(scope="module")
def pod(adapter: AskedAdapter) -> Document:
    (only,) = adapter.installed.wait_until_ready()
    return only


def both_ways(
    adapter: AskedAdapter, pod: Document, *, pair: KeyPair | None = None, token: str | None = None
) -> tuple[PlainClient, PlainClient]:
    return adapter.through_the_api_server(pair=pair, token=token), adapter.directly(pod, pair=pair, token=token)


def refusal(adapter: AskedAdapter, user: str) -> str:
    group = 'API group "custom.metrics.k8s.io"'
    return f'User "{user}" cannot get resource "pods/{METRIC}" in {group} in the namespace "{adapter.shop}"'


def new_account(cluster: Cluster, namespace: str, name: str) -> Document:
    return cluster.client.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})


def reading_account(adapter: AskedAdapter, name: str) -> Document:
    """Make a service account that may read the metric."""
    adapter.allow({"kind": "ServiceAccount", "name": name, "namespace": adapter.shop})
    return new_account(adapter.cluster, adapter.shop, name)


def signing_key(cluster: Cluster) -> Path:
    return cluster.plane.authorities.service_accounts.private_file


def test_a_user_without_rights_is_refused_in_the_same_words_by_the_api_server_and_by_the_adapter(
    adapter: AskedAdapter, pod: Document
) -> None:
    pair = adapter.cluster.plane.authorities.caller("ann")
    replies = [client.get(adapter.metric_path) for client in both_ways(adapter, pod, pair=pair)]
    assert [reply.status for reply in replies] == [403, 403]
    for reply in replies:
        assert reply.document["message"].endswith(refusal(adapter, "ann"))
        assert reply.document["reason"] == "Forbidden"


def refusals_counted(adapter: AskedAdapter, pod: Document) -> int:
    """Return how many requests the replica itself has answered with 403."""
    pair = adapter.cluster.plane.authorities.caller("operator", ["system:masters"])
    text = adapter.directly(pod, pair=pair).get("/metrics").body.decode()
    lines = [line for line in text.splitlines() if line.startswith(REQUESTS) and 'code="403"' in line]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines)


def test_requests_that_the_api_server_refuses_never_reach_the_adapter(adapter: AskedAdapter, pod: Document) -> None:
    pair = adapter.cluster.plane.authorities.caller("bob")
    through, direct = both_ways(adapter, pod, pair=pair)
    before = refusals_counted(adapter, pod)
    assert through.get(adapter.metric_path).status == 403
    assert refusals_counted(adapter, pod) == before
    assert direct.get(adapter.metric_path).status == 403
    assert refusals_counted(adapter, pod) == before + 1


def test_a_user_with_the_right_reads_the_value_both_ways(adapter: AskedAdapter, pod: Document) -> None:
    pair = adapter.reader("carol")
    through, direct = both_ways(adapter, pod, pair=pair)
    adapter.cluster.wait_for("the right", lambda: wrong_with(through.get(adapter.metric_path)) is None)
    assert wrong_with(direct.get(adapter.metric_path)) is None
    other = adapter.metric_path.replace(METRIC, "another")
    assert [client.get(other).status for client in (through, direct)] == [403, 403]


def test_identity_headers_without_a_certificate_authenticate_no_caller(adapter: AskedAdapter, pod: Document) -> None:
    reply = adapter.directly(pod).get(adapter.metric_path, FORGED)
    assert reply.status == 401


@pytest.mark.parametrize("name", ["mallory", FRONT_PROXY_NAME])
def test_a_certificate_of_the_client_ca_names_the_caller_and_identity_headers_are_ignored(
    adapter: AskedAdapter, pod: Document, name: str
) -> None:
    pair = adapter.cluster.plane.authorities.caller(name)
    reply = adapter.directly(pod, pair=pair).get(adapter.metric_path, FORGED)
    assert reply.status == 403
    assert refusal(adapter, name) in reply.document["message"]


def test_a_certificate_of_a_wrong_ca_is_cut_off_in_the_handshake(
    adapter: AskedAdapter, pod: Document, tmp_path: Path
) -> None:
    # Of the same names as the real one, so only the signature differs.
    pair = Authority(tmp_path / "wrong", "e2e-front-proxy-1").client(FRONT_PROXY_NAME)
    with pytest.raises(urllib3.exceptions.HTTPError, match=r"(?i)unknown.ca"):
        adapter.directly(pod, pair=pair).get(adapter.metric_path, FORGED)


def test_identity_headers_beside_a_token_are_ignored(adapter: AskedAdapter, pod: Document) -> None:
    new_account(adapter.cluster, adapter.shop, "nosy")
    token = adapter.cluster.service_account_token(adapter.shop, "nosy")
    reply = adapter.directly(pod, token=token).get(adapter.metric_path, FORGED)
    assert reply.status == 403
    assert refusal(adapter, f"system:serviceaccount:{adapter.shop}:nosy") in reply.document["message"]


def test_a_token_is_valid_until_it_expires_for_its_audience_and_if_it_is_unchanged(
    adapter: AskedAdapter, pod: Document
) -> None:
    cluster, account = adapter.cluster, reading_account(adapter, "reader")
    key = signing_key(cluster)

    def statuses(token: str) -> list[int]:
        return [client.get(adapter.metric_path).status for client in both_ways(adapter, pod, token=token)]

    good = signed_token(account, key, Lifetime(600))
    cluster.wait_for("the right", lambda: statuses(good) == [200, 200])
    assert statuses(cluster.service_account_token(adapter.shop, "reader")) == [200, 200]
    assert statuses(signed_token(account, key, Lifetime(-60))) == [401, 401]
    assert statuses(signed_token(account, key, Lifetime(600, audience="vault"))) == [401, 401]
    assert statuses(good[:-20] + "A" * 20) == [401, 401]


def test_a_token_is_refused_soon_after_its_account_was_deleted(adapter: AskedAdapter, pod: Document) -> None:
    cluster = adapter.cluster
    reading_account(adapter, "leaver")
    token = cluster.service_account_token(adapter.shop, "leaver")
    direct = adapter.directly(pod, token=token)
    cluster.wait_for("the right", lambda: direct.get(adapter.metric_path).status == 200)
    cluster.client.delete(f"/api/v1/namespaces/{adapter.shop}/serviceaccounts/leaver")
    # Two memories of ten seconds each: the API server's and the adapter's.
    cluster.wait_for("the refusal", lambda: direct.get(adapter.metric_path).status == 401, 120)


def test_an_anonymous_caller_sees_only_health(adapter: AskedAdapter, pod: Document) -> None:
    nobody = adapter.directly(pod)
    assert {path: nobody.get(path).status for path in HEALTH} == dict.fromkeys(HEALTH, 200)
    groups = ("/apis", "/apis/custom.metrics.k8s.io", "/apis/custom.metrics.k8s.io/v1beta2")
    closed = ("/", "/metrics", "/version", "/openapi/v2", "/openapi/v3", *groups)
    answers = {path: nobody.get(path).status for path in (*closed, adapter.metric_path)}
    assert {path: status for path, status in answers.items() if status not in {401, 403}} == {}
