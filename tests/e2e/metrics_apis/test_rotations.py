"""A cluster renews authorities, certificates, tokens and the API server itself while an adapter runs."""

from __future__ import annotations

import os
import ssl
import time
from typing import TYPE_CHECKING, Any, Final

import pytest
import urllib3.exceptions

from demo.machine.certificates import KeyPair
from demo.machine.files import replace_file
from tests.e2e.support.asked_adapter import PATIENCE_SECONDS, PORT, AskedAdapter, asked_adapter, wrong_with
from tests.e2e.support.figures import state
from tests.e2e.support.installed import values_for
from tests.e2e.support.steady_load import SteadyLoad, steady_load
from tests.helm.chart import NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document, Reply
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.support.plain_client import PlainClient
    from tests.support.prometheus import ScrapedPrometheus

__all__ = ["state"]

pytestmark = pytest.mark.needs_pods

PER_SECOND: Final = 20.0
ENOUGH: Final = 60
"""Right answers after which the system counts as recovered."""
FIRST: Final = 10
"""Right answers after which the load counts as started."""
GRANTED: Final = 20
"""Requests of the adapter to the API server, of all its kinds, after which its token is known to be valid."""
PASSED_ON_SECONDS: Final = 10.0
"""The time in which everybody notices that an API server is ready again; they try every few seconds."""
SHORT_LIFE: Final = "--serving-certificate-life=75s"
"""With this flag the next serving certificate is made after 50 seconds; the rest is time for a busy machine."""
TRUST: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
READER: Final = "rotation-reader"


@pytest.fixture(scope="module")
def adapter(cluster: Cluster, pod_metrics: PodMetrics, prometheus: ScrapedPrometheus) -> Iterator[AskedAdapter]:
    with asked_adapter(cluster, pod_metrics, prometheus, 2, SHORT_LIFE) as running:
        yield running


@pytest.fixture(scope="module")
def reader(adapter: AskedAdapter) -> KeyPair:
    return adapter.reader(READER)


@pytest.fixture
def load(adapter: AskedAdapter, reader: KeyPair) -> Iterator[SteadyLoad]:
    """Yield requests through the API server, which have started when the test begins."""
    client = adapter.through_the_api_server(pair=reader)
    with steady_load(lambda: client.get(adapter.metric_path), wrong_with, PER_SECOND) as running:
        answered(adapter, running, FIRST)
        yield running
    client.close()


def answered(adapter: AskedAdapter, load: SteadyLoad, count: int = ENOUGH) -> None:
    """Wait for some right answers from now on."""
    moment = time.monotonic()
    adapter.cluster.wait_for(
        "right answers", lambda: load.right_since(moment) >= count, PATIENCE_SECONDS, why_not=load.report
    )


def front_proxy(adapter: AskedAdapter, folder: Path) -> KeyPair:
    """Return a copy of the certificate that the aggregator now presents."""
    authorities = adapter.cluster.plane.authorities
    copies = folder / f"{os.urandom(3).hex()}.crt", folder / f"{os.urandom(3).hex()}.key"
    replace_file(copies[0], authorities.front_proxy_certificate_file.read_text())
    replace_file(copies[1], authorities.front_proxy_key_file.read_text())
    return KeyPair(*copies, authorities.front_proxy_ca_file, ())


def spoken_for(client: PlainClient, adapter: AskedAdapter) -> Reply:
    """Send a request as a front proxy does, on behalf of the reader."""
    return client.get(adapter.metric_path, {"X-Remote-User": READER, "X-Remote-Group": "system:authenticated"})


def is_believed(adapter: AskedAdapter, pods: list[Document], pair: KeyPair) -> bool:
    return all(wrong_with(spoken_for(adapter.directly(pod, pair=pair), adapter)) is None for pod in pods)


def is_cut_off(adapter: AskedAdapter, pods: list[Document], pair: KeyPair) -> bool:
    """Return whether no replica accepts a connection with this certificate."""
    for pod in pods:
        try:
            spoken_for(adapter.directly(pod, pair=pair), adapter)
        except urllib3.exceptions.SSLError:
            continue
        return False
    return True


def starts(pods: list[Document]) -> set[tuple[str, int]]:
    """Return which pods these are and how often each was restarted."""
    return {(pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]) for pod in pods}


def trust_only(adapter: AskedAdapter, authority_file: Path) -> None:
    """Stop trusting all other request-header authorities, in the API server's file and in what it has published."""
    bundle = authority_file.read_text()
    replace_file(adapter.cluster.plane.authorities.front_proxy_ca_file, bundle)

    def alone() -> bool:
        adapter.cluster.client.merge(TRUST, {"data": {"requestheader-client-ca-file": bundle}})
        published: str = adapter.cluster.client.get(TRUST)["data"]["requestheader-client-ca-file"]
        return published.strip() == bundle.strip()

    adapter.cluster.wait_for("one authority alone", alone, PATIENCE_SECONDS)


def test_the_request_header_authority_is_replaced_and_no_request_fails(
    adapter: AskedAdapter, load: SteadyLoad, state: Callable[[str, str], None], tmp_path: Path
) -> None:
    pods = adapter.installed.wait_until_ready()
    old = front_proxy(adapter, tmp_path)
    assert is_believed(adapter, pods, old)
    begin = time.monotonic()
    authority = adapter.cluster.rotate_request_header_ca()
    new = front_proxy(adapter, tmp_path)
    wait = adapter.cluster.wait_for
    wait("trust in the new authority", lambda: is_believed(adapter, pods, new), PATIENCE_SECONDS)
    taken_in = time.monotonic() - begin
    answered(adapter, load)
    trust_only(adapter, authority.ca_file)
    wait("the end of trust in the old one", lambda: is_cut_off(adapter, pods, old), PATIENCE_SECONDS)
    # From here on the aggregator is believed by its new certificate alone.
    answered(adapter, load)
    assert spoken_for(adapter.directly(pods[0], pair=authority.client("somebody-else")), adapter).status == 403
    assert starts(adapter.installed.wait_until_ready()) == starts(pods)
    state("request-header CA rotated", f"{load.report()}; taken in after {taken_in:.1f} s")
    assert load.failures == []


def test_the_api_server_restarts_and_another_one_would_be_served_meanwhile(
    adapter: AskedAdapter, load: SteadyLoad, state: Callable[[str, str], None], tmp_path: Path
) -> None:
    first, second = pods = adapter.installed.wait_until_ready()
    another = adapter.directly(first, pair=front_proxy(adapter, tmp_path))
    # Nobody speaks for this one, so without an API server it is known to nobody.
    alone = adapter.directly(second, token=reading_token(adapter))
    with (
        steady_load(lambda: spoken_for(another, adapter), wrong_with, PER_SECOND) as beside,
        steady_load(lambda: alone.get(adapter.metric_path), wrong_with, PER_SECOND) as with_token,
    ):
        answered(adapter, beside, FIRST)
        begin = time.monotonic()
        adapter.cluster.restart_api_server()
        ready = time.monotonic()
        for one in (load, beside, with_token):
            answered(adapter, one)
    state("API server restarted", f"ready after {ready - begin:.1f} s; through it: {load.report(begin)}")
    state("the same, as another API server asks", beside.report(begin))
    state("the same, with a token", with_token.report(begin))
    late = ready + PASSED_ON_SECONDS
    assert [one for one in (*load.failures, *with_token.failures) if one.end < begin or one.start > late] == []
    assert beside.failures == []
    assert starts(adapter.installed.wait_until_ready()) == starts(pods)


@pytest.mark.parametrize("replicas", [2, 1])
def test_pods_that_come_and_go_after_the_restart_are_seen(adapter: AskedAdapter, replicas: int) -> None:
    def values() -> list[str]:
        return [item["value"] for item in adapter.cluster.client.get(adapter.metric_path)["items"]]

    cluster = adapter.cluster
    cluster.kubectl("scale", "deployment", "web", f"--replicas={replicas}", "-n", adapter.shop)
    cluster.wait_for("their values", lambda: len(values()) == replicas, PATIENCE_SECONDS, why_not=values)


def shown_certificates(pods: list[Document]) -> list[str]:
    return [ssl.get_server_certificate((pod["status"]["podIP"], PORT), timeout=10) for pod in pods]


def test_the_serving_certificate_is_replaced_and_no_request_fails(
    adapter: AskedAdapter, load: SteadyLoad, state: Callable[[str, str], None], reader: KeyPair
) -> None:
    pods = adapter.installed.wait_until_ready()
    before = shown_certificates(pods)
    begin = time.monotonic()

    def replaced() -> bool:
        return not set(shown_certificates(pods)) & set(before)

    adapter.cluster.wait_for("other certificates", replaced, 75 + PATIENCE_SECONDS)
    taken = time.monotonic() - begin
    assert len(set(shown_certificates(pods))) == 1
    for pod in pods:
        assert wrong_with(adapter.directly(pod, pair=reader).get(adapter.metric_path)) is None
    answered(adapter, load)
    assert starts(adapter.installed.wait_until_ready()) == starts(pods)
    state("serving certificate rotated", f"{load.report()}; shown {taken:.1f} s after the test's begin")
    assert load.failures == []


def new_token(adapter: AskedAdapter, bound_to: Document | None = None) -> str:
    """Return a token of the adapter's account, which becomes invalid with the Secret that it is bound to."""
    spec: dict[str, Any] = {"expirationSeconds": 3600}
    if bound_to:
        spec["boundObjectRef"] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "name": bound_to["metadata"]["name"],
            "uid": bound_to["metadata"]["uid"],
        }
    answer = adapter.cluster.client.create(
        f"/api/v1/namespaces/{adapter.installed.namespace}/serviceaccounts/{NAME}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    return str(answer["status"]["token"])


def new_secret(adapter: AskedAdapter, name: str, content: dict[str, str]) -> Document:
    path = f"/api/v1/namespaces/{adapter.installed.namespace}/secrets"
    return adapter.cluster.client.create(path, {"metadata": {"name": name}, "stringData": content})


def mounted_account(secret: str) -> dict[str, Any]:
    """Return values of the chart that mount a Secret in place of the kubelet's token."""
    return {
        "extraVolumes": [{"name": "account", "secret": {"secretName": secret}}],
        "extraVolumeMounts": [{"name": "account", "mountPath": ACCOUNT, "readOnly": True}],
    }


def is_refused(adapter: AskedAdapter, token: str) -> bool:
    return adapter.cluster.client_with_token(token).ask("GET", "/api/v1/nodes").status == 401


def successes_since(adapter: AskedAdapter, moment: float) -> int:
    """Return how many requests of the adapter the API server has granted since a Unix time."""
    user = f"system:serviceaccount:{adapter.installed.namespace}:{NAME}"
    events = [event for event in adapter.cluster.audit_events() if event.user == user]
    return sum(1 for event in events if event.code in {200, 201} and event.start.timestamp() > moment)


def test_the_adapter_uses_its_renewed_token_once_the_old_one_has_expired(
    adapter: AskedAdapter, prometheus: ScrapedPrometheus, load: SteadyLoad, state: Callable[[str, str], None]
) -> None:
    cluster, namespace = adapter.cluster, adapter.installed.namespace
    first = new_token(adapter, bound_to=new_secret(adapter, "life-of-the-first", {}))
    new_secret(adapter, "account", {"token": first, "ca.crt": cluster.ca_file.read_text(), "namespace": namespace})
    adapter.installed.upgrade(values_for(prometheus, 2, SHORT_LIFE) | mounted_account("account"))
    pods = adapter.installed.wait_until_ready()
    # As a kubelet does it: the new token is in its place before the old one has ended.
    second = new_token(adapter)
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    cluster.client.merge(f"{secrets}/account", {"stringData": {"token": second}})
    cluster.wait_for("the new token in the pods", lambda: tokens_of(adapter, pods) == {second}, PATIENCE_SECONDS)
    cluster.client.delete(f"{secrets}/life-of-the-first")
    begin = time.monotonic()
    cluster.wait_for("the end of the old token", lambda: is_refused(adapter, first), PATIENCE_SECONDS)
    ended, moment = time.monotonic(), time.time()
    cluster.wait_for("granted requests", lambda: successes_since(adapter, moment) >= GRANTED, PATIENCE_SECONDS)
    # Somebody whom nobody remembers: it takes both reviews to let them in.
    readers = [adapter.directly(pod, token=reading_token(adapter)) for pod in pods]
    cluster.wait_for("reviews", lambda: all(wrong_with(one.get(adapter.metric_path)) is None for one in readers))
    answered(adapter, load)
    assert starts(adapter.installed.wait_until_ready()) == starts(pods)
    state("the adapter's token ended and was renewed", f"{load.report(begin)}; refused from {ended - begin:.1f} s on")
    assert load.failures == []


def tokens_of(adapter: AskedAdapter, pods: list[Document]) -> set[str]:
    """Return the content of the token file in each of the pods."""
    folders = [adapter.cluster.plane.pods_folder / pod["metadata"]["uid"] for pod in pods]
    return {(folder / "volumes" / "account" / "token").read_text() for folder in folders}


def reading_token(adapter: AskedAdapter) -> str:
    """Return the token of a new account that may read the metric."""
    name = f"reader-{os.urandom(3).hex()}"
    adapter.allow({"kind": "ServiceAccount", "name": name, "namespace": adapter.shop})
    path = f"/api/v1/namespaces/{adapter.shop}/serviceaccounts"
    adapter.cluster.client.create(path, {"metadata": {"name": name}})
    return adapter.cluster.service_account_token(adapter.shop, name)
