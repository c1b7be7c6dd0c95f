"""The real program over real TLS, with its callers' CAs, tokens and rights in an API server."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from demo.machine.certificates import Authority
from tests.support.caller import CUSTOM, EXTERNAL, HPA, Answer, Caller
from tests.support.fake_apiserver import FakeApiServer, Fault, TokenUser
from tests.support.serving import FRONT_PROXY, Adapter, Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from demo.machine.certificates import KeyPair

HPA_USER = HPA[0][1]
MASTERS = ("X-Remote-Group", "system:masters")
VALUES = f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/requests"
CONFIG_MAP = ("kube-system", "extension-apiserver-authentication")
NOWHERE = "http://127.0.0.1:9"
"""An address without a Prometheus: callers with access get another error, or a document that needs no Prometheus."""
RULES = "rules: []"
PROTECTED = (VALUES, f"{EXTERNAL}/namespaces/shop/queue", f"{CUSTOM}/v1beta1", "/apis", "/metrics", "/version", "/")


@dataclass
class Harness:
    adapter: Adapter
    cluster: FakeApiServer
    trust: Trust
    clients: Authority

    def publish(self, front: Sequence[Authority] = (), clients: Sequence[Authority] = (), **more: str) -> None:
        publish(self.cluster, front or [self.trust.front_proxies], clients or [self.clients], **more)

    def direct(self, token: str = "", pair: KeyPair | None = None) -> Caller:
        identity = (("Authorization", f"Bearer {token}"),) if token else ()
        return Caller(self.adapter.port, self.trust.context(pair), identity)

    def get(self, caller: Caller, path: str = "/apis", *headers: tuple[str, str]) -> Answer:
        with caller:
            return caller.get(path, headers)

    def rights(self, user: str) -> list[object]:
        found = [spec for spec in self.cluster.reviews.rights if spec["user"] == user]
        return [spec.get("resourceAttributes") or spec.get("nonResourceAttributes") for spec in found]


def publish(cluster: FakeApiServer, front: Sequence[Authority], clients: Sequence[Authority], **more: str) -> None:
    data = {
        "client-ca-file": "".join(one.ca_file.read_text() for one in clients),
        "requestheader-client-ca-file": "".join(one.ca_file.read_text() for one in front),
        "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    cluster.put_config_map(*CONFIG_MAP, data | {key.replace("_", "-"): value for key, value in more.items()})


@contextlib.contextmanager
def delegating(
    folder: Path, trust: Trust, cluster: FakeApiServer, clients: Authority, *flags: str
) -> Iterator[Harness]:
    kubeconfig = cluster.kubeconfig(folder / "config")
    every = (
        "--requestheader-client-ca-file=",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-token-webhook-cache-ttl=200ms",
        "--authorization-webhook-cache-authorized-ttl=0s",
        "--authorization-webhook-cache-unauthorized-ttl=0s",
        "--log-level=debug",
        *flags,
    )
    with running_adapter(folder, trust, *every, prometheus_url=NOWHERE, rules=RULES) as adapter:
        yield Harness(adapter, cluster, trust, clients)


@pytest.fixture(name="trust", scope="module")
def _trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return Trust.made_in(tmp_path_factory.mktemp("trust"))


@pytest.fixture(name="clients", scope="module")
def _clients(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("clients"), "clients")


@pytest.fixture(name="running", scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory, trust: Trust, clients: Authority) -> Iterator[Harness]:
    with FakeApiServer() as cluster:
        publish(cluster, [trust.front_proxies], [clients])
        folder = tmp_path_factory.mktemp("delegated")
        with delegating(
            folder, trust, cluster, clients, "--api-audiences=tidewatch", "--authorization-always-allow-paths=/version"
        ) as harness:
            eventually(lambda: harness.adapter.plain("/readyz").status == 200)
            yield harness
            assert "t0ken" not in harness.adapter.log, "no token is in any log"
            assert "Traceback" not in harness.adapter.log


@pytest.fixture(name="harness")
def _harness(running: Harness) -> Iterator[Harness]:
    """Yield the running harness with the cluster in its first state."""
    running.publish()
    reviews = running.cluster.reviews
    reviews.deny_all()
    reviews.users = {
        "alice-t0ken": TokenUser("alice", ("team-a",), "7", {"scopes": ["a"]}, audiences=("tidewatch",)),
        "other-t0ken": TokenUser("alice", audiences=("another",)),
    }
    reviews.allow("system:authenticated", "get", "*")
    reviews.allow("system:authenticated", "list", "*")
    reviews.allow_path("alice", "get", "*")
    reviews.allow_path("bob", "get", "*")
    reviews.allow_path(HPA_USER, "get", "*")
    # After a failure no review is sent for a moment.
    eventually(lambda: running.get(running.direct("alice-t0ken")).status == 200)
    eventually(lambda: served(running, running.trust.front_proxy, [("X-Remote-User", "alice")]))
    reviews.rights.clear()
    reviews.tokens.clear()
    yield running
    running.cluster.faults.clear()
    reviews.answer_now()


class TestAuthentication:
    def test_the_front_proxy_is_served_for_the_user_it_names(self, harness: Harness) -> None:
        assert harness.get(harness.adapter.caller()).status == 200

    def test_a_token_identifies_its_user(self, harness: Harness) -> None:
        harness.cluster.reviews.users["one-t0ken"] = harness.cluster.reviews.users["alice-t0ken"]
        assert harness.get(harness.direct("one-t0ken"), "/metrics").status == 200
        assert harness.cluster.reviews.tokens == [{"token": "one-t0ken", "audiences": ["tidewatch"]}]
        (spec,) = harness.cluster.reviews.rights
        assert (spec["user"], spec["uid"], spec["extra"]) == ("alice", "7", {"scopes": ["a"]})
        assert spec["groups"] == ["team-a", "system:authenticated"]

    @pytest.mark.parametrize("token", ["made-up-t0ken", "other-t0ken", "a b-t0ken"])
    @pytest.mark.parametrize("path", ["/apis", "/metrics", VALUES])
    def test_a_token_that_is_not_accepted_is_401(self, harness: Harness, token: str, path: str) -> None:
        answer = harness.get(harness.direct(token), path, ("X-Remote-User", "alice"), MASTERS)
        assert (answer.status, answer.document["reason"]) == (401, "Unauthorized")
        assert "t0ken" not in answer.message

    def test_a_revoked_token_is_accepted_until_its_review_expires(self, harness: Harness) -> None:
        harness.cluster.reviews.users["revoked-t0ken"] = TokenUser("alice", audiences=("tidewatch",))
        with harness.direct("revoked-t0ken") as caller:
            assert caller.get("/apis").status == 200
            del harness.cluster.reviews.users["revoked-t0ken"]
            eventually(lambda: caller.get("/apis").status == 401)

    def test_a_client_certificate_identifies_its_user(self, harness: Harness) -> None:
        assert harness.get(harness.direct(pair=harness.clients.client("bob", ["team-b"]))).status == 200
        (spec,) = harness.cluster.reviews.rights
        assert (spec["user"], spec["groups"]) == ("bob", ["team-b", "system:authenticated"])

    def test_identity_headers_beside_a_client_certificate_or_a_token_are_ignored(self, harness: Harness) -> None:
        forged = (("X-Remote-User", "root"), MASTERS)
        harness.get(harness.direct(pair=harness.clients.client(FRONT_PROXY)), "/apis", *forged)
        harness.get(harness.direct("alice-t0ken"), "/apis", *forged)
        assert [spec["user"] for spec in harness.cluster.reviews.rights] == [FRONT_PROXY, "alice"]
        assert all("system:masters" not in spec["groups"] for spec in harness.cluster.reviews.rights)

    def test_a_certificate_of_the_request_header_ca_does_not_identify_a_user(self, harness: Harness) -> None:
        front_proxies = harness.trust.front_proxies
        named, allowed = (front_proxies.client(name, ["system:masters"]) for name in ("root", FRONT_PROXY))
        assert harness.get(harness.direct(pair=named)).status == 403
        assert harness.get(harness.direct(pair=allowed)).status == 401
        assert harness.cluster.reviews.rights == []

    def test_a_token_is_used_if_the_certificate_identifies_no_user(self, harness: Harness) -> None:
        pair = harness.trust.front_proxies.client("somebody")
        assert harness.get(harness.direct("alice-t0ken", pair)).status == 200

    @pytest.mark.parametrize("path", PROTECTED)
    def test_a_request_without_credentials_is_401_except_on_open_paths(self, harness: Harness, path: str) -> None:
        assert harness.get(harness.direct(), path).status == (200 if path == "/version" else 401)
        assert harness.get(harness.direct(), path, ("X-Remote-User", "alice"), MASTERS).status in {200, 401}
        assert harness.cluster.reviews.rights == []

    @pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
    def test_health_is_open_to_all(self, harness: Harness, path: str) -> None:
        assert harness.get(harness.direct(), path).status == 200
        assert harness.get(harness.direct("made-up-t0ken"), path).status == 200
        assert harness.cluster.reviews.tokens == []


class TestAuthorization:
    def test_reviews_have_the_attributes_that_kube_apiserver_reviewed(self, harness: Harness) -> None:
        alice = (("X-Remote-User", "carol"), ("X-Remote-Group", "a"), ("X-Remote-Uid", "1"))
        paths = (VALUES, f"{EXTERNAL}/namespaces/shop/queue?labelSelector=a%3Db", "/metrics")
        with harness.adapter.caller(identity=alice) as caller:
            for path in paths:
                caller.get(path)
        custom = {"namespace": "shop", "verb": "get", "group": "custom.metrics.k8s.io", "version": "v1beta2"}
        external = {"namespace": "shop", "verb": "list", "group": "external.metrics.k8s.io", "version": "v1beta1"}
        assert harness.rights("carol") == [
            {**custom, "resource": "pods", "subresource": "requests", "name": "*"},
            {**external, "resource": "queue"},
            {"path": "/metrics", "verb": "get"},
        ]

    def test_a_denied_request_is_403_with_the_wording_of_kubernetes(self, harness: Harness) -> None:
        harness.cluster.reviews.deny_all()
        for caller, user in (
            (harness.adapter.caller(identity=[("X-Remote-User", "dave")]), "dave"),
            (harness.direct("alice-t0ken"), "alice"),
            (harness.direct(pair=harness.clients.client("bob")), "bob"),
        ):
            answer = harness.get(caller, VALUES)
            assert (answer.status, answer.document["reason"]) == (403, "Forbidden")
            assert answer.message == (
                f'pods.custom.metrics.k8s.io "*" is forbidden: User "{user}" cannot get resource "pods/requests" '
                'in API group "custom.metrics.k8s.io" in the namespace "shop"'
            )

    def test_system_masters_need_no_review_with_any_credential(self, harness: Harness) -> None:
        harness.cluster.reviews.deny_all()
        harness.cluster.reviews.users["root-t0ken"] = TokenUser("root", ("system:masters",), audiences=("tidewatch",))
        assert harness.get(harness.direct("root-t0ken")).status == 200
        assert harness.get(harness.direct(pair=harness.clients.client("root", ["system:masters"]))).status == 200
        assert harness.get(harness.adapter.caller(identity=[("X-Remote-User", "kas"), MASTERS])).status == 200
        assert harness.cluster.reviews.rights == []

    def test_reviews_of_front_proxy_and_direct_callers_are_cached_separately(self, harness: Harness) -> None:
        with harness.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "once")]) as caller:
            for _ in range(20):
                assert caller.get("/apis").status == 200
        with harness.direct("alice-t0ken") as caller:
            for _ in range(3):
                assert caller.get("/apis").status == 200
        assert len(harness.rights("alice")) == 3
        # The first answer holds for a random part of five minutes, which may be very short.
        assert len(harness.rights(HPA_USER)) <= 3

    def test_requests_at_the_same_time_share_a_review(self, harness: Harness) -> None:
        harness.cluster.reviews.answer_later()
        threading.Timer(0.3, harness.cluster.reviews.answer_now).start()

        def request(_: int) -> int:
            return harness.get(
                harness.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "herd")])
            ).status

        with ThreadPoolExecutor(24) as pool:
            assert set(pool.map(request, range(96))) == {200}
        assert len(harness.rights(HPA_USER)) <= 3


class TestWithoutTheApiServer:
    @pytest.mark.parametrize("fault", ["status", "garbage"])
    @pytest.mark.parametrize("review", ["tokenreviews", "subjectaccessreviews"])
    def test_errors_and_invalid_answers_grant_no_access(self, harness: Harness, fault: str, review: str) -> None:
        harness.cluster.faults.append(Fault(review, fault, code=500, times=99))  # type: ignore[arg-type] # of the table
        harness.cluster.reviews.users["new-t0ken"] = TokenUser("alice", audiences=("tidewatch",))
        assert harness.get(harness.direct("new-t0ken")).status == 503

    def test_during_an_outage_only_known_autoscalers_are_served(self, harness: Harness) -> None:
        known = harness.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "known")])
        unknown = harness.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "unknown")])
        with known, unknown, harness.direct("alice-t0ken") as direct:
            eventually(lambda: known.get("/apis").status == 200)
            with gone(harness.cluster):
                assert [known.get("/apis").status for _ in range(3)] == [200] * 3
                assert unknown.get("/apis").status == 503
                assert direct.get("/apis").status == 503
                assert harness.adapter.plain("/readyz").status == 200
            eventually(lambda: unknown.get("/apis").status == 200)
            eventually(lambda: direct.get("/apis").status == 200)

    def test_a_slow_api_server_does_not_delay_known_callers(self, harness: Harness) -> None:
        with harness.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "slow")]) as known:
            eventually(lambda: known.get("/apis").status == 200)
            harness.cluster.reviews.answer_later()
            with ThreadPoolExecutor(12) as pool:
                made_up = [pool.submit(harness.get, harness.direct(f"made-up-{number}-t0ken")) for number in range(12)]
                assert [known.get("/apis").status for _ in range(20)] == [200] * 20
                eventually(lambda: [one for one in made_up if one.done() and one.result().status == 429])
                assert known.get("/apis").status == 200
                harness.cluster.reviews.answer_now()
                assert {one.result().status for one in made_up} <= {401, 429, 503}
            eventually(lambda: harness.get(harness.direct("alice-t0ken")).status == 200)


class TestRotation:
    def test_both_cas_are_replaced_while_requests_continue(self, harness: Harness, tmp_path: Path) -> None:
        trust = harness.trust
        new_front, new_clients = (
            Authority(tmp_path / "front", "new-front"),
            Authority(tmp_path / "clients", "new-clients"),
        )
        stop, failed = threading.Event(), []

        def keep_sending() -> None:
            with harness.adapter.caller() as caller:
                while not stop.is_set():
                    answer = caller.get("/apis")
                    if answer.status != 200:
                        failed.append(answer)

        sending = threading.Thread(target=keep_sending)
        sending.start()
        harness.publish([trust.front_proxies, new_front], [harness.clients, new_clients])
        eventually(lambda: served(harness, new_front.client(FRONT_PROXY), HPA))
        eventually(lambda: served(harness, new_clients.client("bob")))
        assert served(harness, trust.front_proxy, HPA)
        assert served(harness, harness.clients.client("bob"))
        stop.set()
        sending.join(30)
        assert failed == [], "the open connection was kept"
        with harness.adapter.caller() as open_connection:
            assert open_connection.get("/apis").status == 200
            harness.publish([new_front], [new_clients])
            eventually(lambda: open_connection.get("/apis").status == 403)
        assert not served(harness, trust.front_proxy, HPA)
        assert not served(harness, harness.clients.client("bob"))

    @pytest.mark.parametrize("broken", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
    def test_broken_bundles_are_refused_and_the_last_good_ones_stay(self, harness: Harness, broken: str) -> None:
        harness.publish(requestheader_client_ca_file=broken, client_ca_file=broken)
        eventually(lambda: harness.adapter.said("request-header CA is refused; the last good one stays in use"))
        assert served(harness, harness.trust.front_proxy, HPA)
        assert served(harness, harness.clients.client("bob"))

    def test_a_deleted_or_forbidden_config_map_leaves_the_known_cas(self, harness: Harness) -> None:
        harness.cluster.remove("configmaps", *CONFIG_MAP)
        eventually(lambda: harness.adapter.said("there is no ConfigMap kube-system/extension-apiserver-authentication"))
        assert served(harness, harness.trust.front_proxy, HPA)
        harness.cluster.forbid("list", "configmaps")
        harness.cluster.expire_watches()
        eventually(lambda: harness.adapter.said("extension-apiserver-authentication-reader"))
        assert served(harness, harness.trust.front_proxy, HPA)
        assert harness.adapter.plain("/readyz").status == 200
        harness.cluster.allow("list", "configmaps")


@contextlib.contextmanager
def gone(cluster: FakeApiServer) -> Iterator[None]:
    cluster.stop()
    try:
        yield
    finally:
        cluster.start()


def served(harness: Harness, pair: KeyPair, identity: Sequence[tuple[str, str]] = ()) -> bool:
    """Return whether a new connection with this certificate is served; TLS may cut it off."""
    try:
        with harness.adapter.caller(pair, identity) as caller:
            return caller.get("/apis").status == 200
    except OSError:
        return False


def test_the_adapter_is_not_ready_until_the_cas_can_be_read_and_gives_the_reason(
    tmp_path: Path, trust: Trust, clients: Authority
) -> None:
    with FakeApiServer() as cluster:
        cluster.forbid("list", "configmaps")
        cluster.reviews.allow_path(HPA_USER, "get", "/apis")
        with delegating(tmp_path, trust, cluster, clients) as harness:
            eventually(lambda: "reader" in harness.adapter.plain("/readyz").text)
            assert (
                "[-]authentication failed: no front proxy is known: ConfigMap" in harness.adapter.plain("/readyz").text
            )
            assert harness.adapter.plain("/livez").status == 200
            assert not served(harness, trust.front_proxy, HPA)
            cluster.allow("list", "configmaps")
            publish(cluster, [clients], [clients], requestheader_allowed_names="[]")
            eventually(lambda: "an authority in common" in harness.adapter.plain("/readyz").text)
            harness.publish()
            eventually(lambda: harness.adapter.plain("/readyz").status == 200)
            assert served(harness, trust.front_proxy, HPA)
            assert harness.adapter.metric("tidewatch_adapter_authorization_reviews_total", result="allowed") == 1


def test_with_flags_alone_the_front_proxy_is_served_without_reviews(
    tmp_path: Path, trust: Trust, clients: Authority
) -> None:
    flags = (f"--client-ca-file={clients.ca_file}", "--front-proxy-authorized-ttl=1m", "--api-audiences=a")
    with running_adapter(tmp_path, trust, *flags, prometheus_url=NOWHERE, rules=RULES) as adapter:
        with adapter.caller() as caller:
            assert caller.get("/apis").status == 200
        with adapter.caller(clients.client("root", ["system:masters"]), identity=()) as caller:
            answer = caller.get("/apis")
            assert (answer.status, "direct callers are not served" in answer.message) == (403, True)
        assert len(adapter.said("WARNING .*Only requests through the verified front proxy")) == 1
        assert len(adapter.said("WARNING .*--front-proxy-authorized-ttl has no effect: no access is reviewed")) == 1
        assert len(adapter.said("WARNING .*--api-audiences has no effect: no tokens are reviewed")) == 1
