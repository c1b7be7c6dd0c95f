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
class Place:
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
def delegating(folder: Path, trust: Trust, cluster: FakeApiServer, clients: Authority, *flags: str) -> Iterator[Place]:
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
        yield Place(adapter, cluster, trust, clients)


@pytest.fixture(name="trust", scope="module")
def _trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return Trust.made_in(tmp_path_factory.mktemp("trust"))


@pytest.fixture(name="clients", scope="module")
def _clients(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("clients"), "clients")


@pytest.fixture(name="running", scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory, trust: Trust, clients: Authority) -> Iterator[Place]:
    with FakeApiServer() as cluster:
        publish(cluster, [trust.front_proxies], [clients])
        folder = tmp_path_factory.mktemp("delegated")
        with delegating(
            folder, trust, cluster, clients, "--api-audiences=tidewatch", "--authorization-always-allow-paths=/version"
        ) as place:
            eventually(lambda: place.adapter.plain("/readyz").status == 200)
            yield place
            assert "t0ken" not in place.adapter.log, "no token is in any log"
            assert "Traceback" not in place.adapter.log


@pytest.fixture(name="place")
def _place(running: Place) -> Iterator[Place]:
    """Yield the running place with everything in the cluster as it was."""
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
    # After a failure the API server is left alone for a moment.
    eventually(lambda: running.get(running.direct("alice-t0ken")).status == 200)
    eventually(lambda: served(running, running.trust.front_proxy, [("X-Remote-User", "alice")]))
    reviews.rights.clear()
    reviews.tokens.clear()
    yield running
    running.cluster.faults.clear()
    reviews.answer_now()


class TestWhoAsks:
    def test_the_front_proxy_speaks_for_whom_it_says(self, place: Place) -> None:
        assert place.get(place.adapter.caller()).status == 200

    def test_a_token_is_its_users(self, place: Place) -> None:
        place.cluster.reviews.users["one-t0ken"] = place.cluster.reviews.users["alice-t0ken"]
        assert place.get(place.direct("one-t0ken"), "/metrics").status == 200
        assert place.cluster.reviews.tokens == [{"token": "one-t0ken", "audiences": ["tidewatch"]}]
        (spec,) = place.cluster.reviews.rights
        assert (spec["user"], spec["uid"], spec["extra"]) == ("alice", "7", {"scopes": ["a"]})
        assert spec["groups"] == ["team-a", "system:authenticated"]

    @pytest.mark.parametrize("token", ["made-up-t0ken", "other-t0ken", "a b-t0ken"])
    @pytest.mark.parametrize("path", ["/apis", "/metrics", VALUES])
    def test_a_token_that_is_not_accepted_is_401(self, place: Place, token: str, path: str) -> None:
        answer = place.get(place.direct(token), path, ("X-Remote-User", "alice"), MASTERS)
        assert (answer.status, answer.document["reason"]) == (401, "Unauthorized")
        assert "t0ken" not in answer.message

    def test_a_revoked_token_goes_on_until_its_review_is_too_old(self, place: Place) -> None:
        place.cluster.reviews.users["revoked-t0ken"] = TokenUser("alice", audiences=("tidewatch",))
        with place.direct("revoked-t0ken") as caller:
            assert caller.get("/apis").status == 200
            del place.cluster.reviews.users["revoked-t0ken"]
            eventually(lambda: caller.get("/apis").status == 401)

    def test_a_client_certificate_is_its_users(self, place: Place) -> None:
        assert place.get(place.direct(pair=place.clients.client("bob", ["team-b"]))).status == 200
        (spec,) = place.cluster.reviews.rights
        assert (spec["user"], spec["groups"]) == ("bob", ["team-b", "system:authenticated"])

    def test_headers_beside_a_client_certificate_or_a_token_are_nothing(self, place: Place) -> None:
        forged = (("X-Remote-User", "root"), MASTERS)
        place.get(place.direct(pair=place.clients.client(FRONT_PROXY)), "/apis", *forged)
        place.get(place.direct("alice-t0ken"), "/apis", *forged)
        assert [spec["user"] for spec in place.cluster.reviews.rights] == [FRONT_PROXY, "alice"]
        assert all("system:masters" not in spec["groups"] for spec in place.cluster.reviews.rights)

    def test_the_request_header_ca_makes_nobody_a_user(self, place: Place) -> None:
        front_proxies = place.trust.front_proxies
        named, allowed = (front_proxies.client(name, ["system:masters"]) for name in ("root", FRONT_PROXY))
        assert place.get(place.direct(pair=named)).status == 403
        assert place.get(place.direct(pair=allowed)).status == 401
        assert place.cluster.reviews.rights == []

    def test_a_token_counts_where_a_certificate_says_nothing(self, place: Place) -> None:
        pair = place.trust.front_proxies.client("somebody")
        assert place.get(place.direct("alice-t0ken", pair)).status == 200

    @pytest.mark.parametrize("path", PROTECTED)
    def test_nobody_is_401_but_where_it_is_open_to_all(self, place: Place, path: str) -> None:
        assert place.get(place.direct(), path).status == (200 if path == "/version" else 401)
        assert place.get(place.direct(), path, ("X-Remote-User", "alice"), MASTERS).status in {200, 401}
        assert place.cluster.reviews.rights == []

    @pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
    def test_health_is_open_to_all(self, place: Place, path: str) -> None:
        assert place.get(place.direct(), path).status == 200
        assert place.get(place.direct("made-up-t0ken"), path).status == 200
        assert place.cluster.reviews.tokens == []


class TestWhoMay:
    def test_what_is_reviewed_is_what_kube_apiserver_reviewed(self, place: Place) -> None:
        alice = (("X-Remote-User", "carol"), ("X-Remote-Group", "a"), ("X-Remote-Uid", "1"))
        paths = (VALUES, f"{EXTERNAL}/namespaces/shop/queue?labelSelector=a%3Db", "/metrics")
        with place.adapter.caller(identity=alice) as caller:
            for path in paths:
                caller.get(path)
        custom = {"namespace": "shop", "verb": "get", "group": "custom.metrics.k8s.io", "version": "v1beta2"}
        external = {"namespace": "shop", "verb": "list", "group": "external.metrics.k8s.io", "version": "v1beta1"}
        assert place.rights("carol") == [
            {**custom, "resource": "pods", "subresource": "requests", "name": "*"},
            {**external, "resource": "queue"},
            {"path": "/metrics", "verb": "get"},
        ]

    def test_a_denied_request_is_403_in_kubernetes_words(self, place: Place) -> None:
        place.cluster.reviews.deny_all()
        for caller, user in (
            (place.adapter.caller(identity=[("X-Remote-User", "dave")]), "dave"),
            (place.direct("alice-t0ken"), "alice"),
            (place.direct(pair=place.clients.client("bob")), "bob"),
        ):
            answer = place.get(caller, VALUES)
            assert (answer.status, answer.document["reason"]) == (403, "Forbidden")
            assert answer.message == (
                f'User "{user}" cannot get resource "pods/requests" in API group "custom.metrics.k8s.io" '
                'in the namespace "shop"'
            )

    def test_masters_need_no_review_by_whichever_way_they_come(self, place: Place) -> None:
        place.cluster.reviews.deny_all()
        place.cluster.reviews.users["root-t0ken"] = TokenUser("root", ("system:masters",), audiences=("tidewatch",))
        assert place.get(place.direct("root-t0ken")).status == 200
        assert place.get(place.direct(pair=place.clients.client("root", ["system:masters"]))).status == 200
        assert place.get(place.adapter.caller(identity=[("X-Remote-User", "kas"), MASTERS])).status == 200
        assert place.cluster.reviews.rights == []

    def test_front_proxy_callers_are_reviewed_once_and_direct_ones_by_their_own_time(self, place: Place) -> None:
        with place.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "once")]) as caller:
            for _ in range(20):
                assert caller.get("/apis").status == 200
        with place.direct("alice-t0ken") as caller:
            for _ in range(3):
                assert caller.get("/apis").status == 200
        assert len(place.rights("alice")) == 3
        # The first answer holds for a random part of five minutes, which may be very short.
        assert len(place.rights(HPA_USER)) <= 3

    def test_requests_at_the_same_time_share_a_review(self, place: Place) -> None:
        place.cluster.reviews.answer_later()
        threading.Timer(0.3, place.cluster.reviews.answer_now).start()

        def ask(_: int) -> int:
            return place.get(
                place.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "herd")])
            ).status

        with ThreadPoolExecutor(24) as pool:
            assert set(pool.map(ask, range(96))) == {200}
        assert len(place.rights(HPA_USER)) <= 3


class TestWithoutTheApiServer:
    @pytest.mark.parametrize("fault", ["status", "garbage"])
    @pytest.mark.parametrize("review", ["tokenreviews", "subjectaccessreviews"])
    def test_errors_and_garbage_let_nobody_in(self, place: Place, fault: str, review: str) -> None:
        place.cluster.faults.append(Fault(review, fault, code=500, times=99))  # type: ignore[arg-type] # of the table
        place.cluster.reviews.users["new-t0ken"] = TokenUser("alice", audiences=("tidewatch",))
        assert place.get(place.direct("new-t0ken")).status == 503

    def test_while_it_is_away_known_autoscalers_are_served_and_nobody_new(self, place: Place) -> None:
        known = place.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "known")])
        unknown = place.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "unknown")])
        with known, unknown, place.direct("alice-t0ken") as direct:
            eventually(lambda: known.get("/apis").status == 200)
            with gone(place.cluster):
                assert [known.get("/apis").status for _ in range(3)] == [200] * 3
                assert unknown.get("/apis").status == 503
                assert direct.get("/apis").status == 503
                assert place.adapter.plain("/readyz").status == 200
            eventually(lambda: unknown.get("/apis").status == 200)
            eventually(lambda: direct.get("/apis").status == 200)

    def test_a_slow_one_holds_up_nobody_who_is_known(self, place: Place) -> None:
        with place.adapter.caller(identity=[("X-Remote-User", HPA_USER), ("X-Remote-Group", "slow")]) as known:
            eventually(lambda: known.get("/apis").status == 200)
            place.cluster.reviews.answer_later()
            with ThreadPoolExecutor(12) as pool:
                made_up = [pool.submit(place.get, place.direct(f"made-up-{number}-t0ken")) for number in range(12)]
                assert [known.get("/apis").status for _ in range(20)] == [200] * 20
                eventually(lambda: [one for one in made_up if one.done() and one.result().status == 429])
                assert known.get("/apis").status == 200
                place.cluster.reviews.answer_now()
                assert {one.result().status for one in made_up} <= {401, 429, 503}
            eventually(lambda: place.get(place.direct("alice-t0ken")).status == 200)


class TestRotation:
    def test_both_cas_are_taken_in_while_requests_go_on(self, place: Place, tmp_path: Path) -> None:
        trust = place.trust
        new_front, new_clients = (
            Authority(tmp_path / "front", "new-front"),
            Authority(tmp_path / "clients", "new-clients"),
        )
        stop, failed = threading.Event(), []

        def keep_asking() -> None:
            with place.adapter.caller() as caller:
                while not stop.is_set():
                    answer = caller.get("/apis")
                    if answer.status != 200:
                        failed.append(answer)

        asking = threading.Thread(target=keep_asking)
        asking.start()
        place.publish([trust.front_proxies, new_front], [place.clients, new_clients])
        eventually(lambda: served(place, new_front.client(FRONT_PROXY), HPA))
        eventually(lambda: served(place, new_clients.client("bob")))
        assert served(place, trust.front_proxy, HPA)
        assert served(place, place.clients.client("bob"))
        stop.set()
        asking.join(30)
        assert failed == [], "the connection that stood has gone on"
        with place.adapter.caller() as standing:
            assert standing.get("/apis").status == 200
            place.publish([new_front], [new_clients])
            eventually(lambda: standing.get("/apis").status == 403)
        assert not served(place, trust.front_proxy, HPA)
        assert not served(place, place.clients.client("bob"))

    @pytest.mark.parametrize("broken", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
    def test_broken_bundles_are_refused_and_the_last_good_stay(self, place: Place, broken: str) -> None:
        place.publish(requestheader_client_ca_file=broken, client_ca_file=broken)
        eventually(lambda: place.adapter.said("request-header CA is refused; the last good one stays in use"))
        assert served(place, place.trust.front_proxy, HPA)
        assert served(place, place.clients.client("bob"))

    def test_deleted_and_forbidden_leave_what_is_known(self, place: Place) -> None:
        place.cluster.remove("configmaps", *CONFIG_MAP)
        eventually(lambda: place.adapter.said("there is no ConfigMap kube-system/extension-apiserver-authentication"))
        assert served(place, place.trust.front_proxy, HPA)
        place.cluster.forbid("list", "configmaps")
        place.cluster.expire_watches()
        eventually(lambda: place.adapter.said("extension-apiserver-authentication-reader"))
        assert served(place, place.trust.front_proxy, HPA)
        assert place.adapter.plain("/readyz").status == 200
        place.cluster.allow("list", "configmaps")


@contextlib.contextmanager
def gone(cluster: FakeApiServer) -> Iterator[None]:
    cluster.stop()
    try:
        yield
    finally:
        cluster.start()


def served(place: Place, pair: KeyPair, identity: Sequence[tuple[str, str]] = ()) -> bool:
    """Return whether a new connection with this certificate is served; TLS may cut it off."""
    try:
        with place.adapter.caller(pair, identity) as caller:
            return caller.get("/apis").status == 200
    except OSError:
        return False


def test_until_the_material_can_be_read_it_is_not_ready_and_says_why(
    tmp_path: Path, trust: Trust, clients: Authority
) -> None:
    with FakeApiServer() as cluster:
        cluster.forbid("list", "configmaps")
        cluster.reviews.allow_path(HPA_USER, "get", "/apis")
        with delegating(tmp_path, trust, cluster, clients) as place:
            eventually(lambda: "reader" in place.adapter.plain("/readyz").text)
            assert "[-]authentication failed: no front proxy is known: ConfigMap" in place.adapter.plain("/readyz").text
            assert place.adapter.plain("/livez").status == 200
            assert not served(place, trust.front_proxy, HPA)
            cluster.allow("list", "configmaps")
            publish(cluster, [clients], [clients], requestheader_allowed_names="[]")
            eventually(lambda: "an authority in common" in place.adapter.plain("/readyz").text)
            place.publish()
            eventually(lambda: place.adapter.plain("/readyz").status == 200)
            assert served(place, trust.front_proxy, HPA)
            assert place.adapter.metric("tidewatch_adapter_authorization_reviews_total", result="allowed") == 1


def test_by_flags_alone_the_front_proxy_is_served_without_any_review(
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
