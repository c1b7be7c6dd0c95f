"""Over real TLS, only the front proxy is served, whatever the headers say."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.identity_flags import ReviewServer, identity_of_flags
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.metrics.identity.attributes import Attributes
from adapter.metrics.identity.callers import IdentitySettingsError
from tests.support.caller import CUSTOM, EXTERNAL, PATIENCE_SECONDS, Answer, Caller, number
from tests.support.serving import FRONT_PROXY, Adapter
from tests.support.validity import of_yesterday

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.commands.serve.identity_flags import ServeIdentity
    from demo.machine.certificates import KeyPair
    from tests.support.serving import Trust

ALICE = ("X-Remote-User", "alice")
MASTERS = ("X-Remote-Group", "system:masters")
VALUES = f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/open_connections?labelSelector=app%3Dweb"
PROTECTED = (
    VALUES,
    f"{EXTERNAL}/namespaces/shop/queue_depth",
    f"{CUSTOM}/v1beta1",
    EXTERNAL,
    "/apis",
    "/metrics",
    "/version",
    "/",
    "/no/such/path",
)


def get(caller: Caller, *headers: tuple[str, str], path: str = VALUES) -> Answer:
    with caller:
        return caller.get(path, headers)


@pytest.mark.parametrize(
    "headers",
    [
        [ALICE, ("X-Remote-Group", "a"), ("x-remote-group", "b"), ("X-REMOTE-GROUP", "c")],
        [ALICE, ("X-Remote-Group", "a,system:masters")],
        [ALICE, *(("X-Remote-Group", f"group-{number:04d}-of-a-large-organization") for number in range(1500))],
        [ALICE, ("X-Remote-Extra-Example.com%2fRoles", "a"), ("X-Remote-Extra-Example.com%2fRoles", "b")],
    ],
    ids=["lines of one header", "a comma in a group", "1,500 groups", "extra"],
)
def test_any_user_and_groups_from_the_front_proxy_are_served(
    adapter: Adapter, headers: Sequence[tuple[str, str]]
) -> None:
    answer = get(adapter.caller(identity=()), *headers)
    assert [number(item["value"]) for item in answer.items]


@pytest.mark.parametrize("headers", [[], [MASTERS], [("X-Remote-User", ""), MASTERS], [("X_Remote_User", "alice")]])
def test_the_front_proxy_without_a_user_is_401(adapter: Adapter, headers: Sequence[tuple[str, str]]) -> None:
    assert get(adapter.caller(identity=()), *headers).status == 401


@pytest.mark.parametrize("path", PROTECTED)
def test_forged_headers_without_a_certificate_are_401_everywhere(adapter: Adapter, path: str) -> None:
    answer = get(adapter.unauthenticated(), ALICE, MASTERS, ("Authorization", "Bearer forged"), path=path)
    assert (answer.status, answer.document["reason"]) == (401, "Unauthorized")


@pytest.mark.parametrize("path", PROTECTED)
def test_a_certificate_of_the_front_proxy_ca_with_another_name_is_403_everywhere(adapter: Adapter, path: str) -> None:
    pair = adapter.trust.front_proxies.client("somebody", ["system:masters"])
    answer = get(adapter.caller(pair), ALICE, MASTERS, path=path)
    assert (answer.status, answer.document["reason"]) == (403, "Forbidden")
    assert "'somebody'" in answer.message


def test_a_server_certificate_of_the_front_proxy_ca_is_refused_as_a_client(adapter: Adapter) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(adapter.caller(adapter.trust.front_proxies.server([FRONT_PROXY])), ALICE)


@pytest.mark.parametrize("kind", ["another CA", "expired", "self-made chain"])
def test_a_certificate_that_cannot_be_verified_ends_the_handshake(adapter: Adapter, kind: str) -> None:
    trust = adapter.trust
    pair: KeyPair = {
        "another CA": lambda: trust.other_authority.client(FRONT_PROXY, ["system:masters"]),
        "expired": lambda: trust.front_proxies.client(FRONT_PROXY, validity=of_yesterday()),
        "self-made chain": lambda: trust.serving.client(FRONT_PROXY),
    }[kind]()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(adapter.caller(pair), ALICE, MASTERS)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_sessions_are_not_resumed_so_the_certificate_is_presented_each_time(
    adapter: Adapter, version: ssl.TLSVersion
) -> None:
    context = adapter.trust.context(adapter.trust.front_proxy)
    context.minimum_version = context.maximum_version = version
    session: ssl.SSLSession | None = None
    for _ in range(3):
        tcp = socket.create_connection(("127.0.0.1", adapter.port), timeout=PATIENCE_SECONDS)
        with context.wrap_socket(tcp, server_hostname="localhost", session=session) as tls:
            tls.sendall(f"GET {VALUES} HTTP/1.1\r\nHost: a\r\nX-Remote-User: alice\r\n\r\n".encode())
            assert tls.recv(4096).startswith(b"HTTP/1.1 200 ")
            assert not tls.session_reused
            session = tls.session


def test_the_identity_of_a_request_does_not_carry_over_to_the_next_on_its_connection(adapter: Adapter) -> None:
    with adapter.caller(identity=()) as caller:
        statuses = [caller.get(VALUES, headers).status for headers in ([ALICE, MASTERS], [], [ALICE], [MASTERS])]
    assert statuses == [200, 401, 200, 401]


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/readyz/pods"])
def test_health_needs_no_identity(adapter: Adapter, path: str) -> None:
    answer = get(adapter.unauthenticated(), path=path)
    assert (answer.status, answer.text) == (200, "ok")


def test_verbose_health_lists_its_checks(adapter: Adapter) -> None:
    assert get(adapter.unauthenticated(), path="/readyz?verbose").text.splitlines() == [
        "[+]ping ok", "[+]serving ok", "[+]pods ok", "[+]metrics ok", "readyz check passed",
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["/healthz/../metrics", "/livez/%2e%2e/%2e%2e/metrics", "//metrics", "/readyz;/x"])
def test_no_path_bypasses_authentication(adapter: Adapter, path: str) -> None:
    answer = get(adapter.unauthenticated(), ALICE, path=path)
    assert answer.status in {401, 404}
    assert b"tidewatch_adapter_" not in answer.body


def test_own_metrics_are_served_only_to_verified_callers(adapter: Adapter) -> None:
    answer = get(adapter.caller(), path="/metrics")
    assert answer.status == 200
    assert "tidewatch_adapter_requests_total{" in answer.text
    assert get(adapter.unauthenticated(), path="/metrics").status == 401


IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}


def identity(*flags: str, environment: dict[str, str] | None = None) -> ServeIdentity:
    return identity_of_flags(parse_flags(SERVE, ["--config=a", *flags], {}), environment or {})


class TestFlags:
    def test_outside_of_a_cluster_only_flags_count(self) -> None:
        found = identity()
        assert (found.authentication, found.authorization) == (None, None)
        assert not found.materials.settings.asks_for_certificates
        assert found.warnings == ()

    @pytest.mark.parametrize(
        ("flags", "authentication", "authorization", "looked_up"),
        [
            ((), ReviewServer(None), ReviewServer(None), True),
            (("--objects=/a",), None, None, False),
            (("--objects=/a", "--authorization-kubeconfig=b"), None, ReviewServer("b"), False),
            (("--authentication-kubeconfig=a",), ReviewServer("a"), ReviewServer(None), True),
            (("--authentication-skip-lookup",), ReviewServer(None), ReviewServer(None), False),
        ],
    )
    def test_in_a_pod_the_cluster_of_the_pod_is_used_unless_flags_say_otherwise(
        self,
        flags: tuple[str, ...],
        authentication: ReviewServer | None,
        authorization: ReviewServer | None,
        *,
        looked_up: bool,
    ) -> None:
        found = identity(*flags, environment=IN_A_POD)
        assert (found.authentication, found.authorization) == (authentication, authorization)
        assert found.materials.settings.looked_up == looked_up

    def test_nothing_is_looked_up_if_flags_name_both_cas(self, trust: Trust) -> None:
        front, clients = trust.front_proxies.ca_file, trust.other_authority.ca_file
        flags = (f"--requestheader-client-ca-file={front}", f"--client-ca-file={clients}")
        assert not identity(*flags, environment=IN_A_POD).materials.settings.looked_up
        assert identity(flags[0], environment=IN_A_POD).materials.settings.looked_up

    def test_reviews_are_required_if_a_kubeconfig_flag_names_their_server(self) -> None:
        assert identity("--authorization-kubeconfig=a").rights.required
        assert not identity(environment=IN_A_POD).rights.required

    def test_cache_times_and_open_paths_come_from_the_flags(self) -> None:
        found = identity(
            "--authentication-token-webhook-cache-ttl=1s",
            "--authorization-webhook-cache-authorized-ttl=2s",
            "--authorization-webhook-cache-unauthorized-ttl=3s",
            "--front-proxy-authorized-ttl=4m",
            "--api-audiences=a,b",
            "--authorization-always-allow-paths=/metrics,/open/*",
            "--authentication-tolerate-lookup-failure",
            environment=IN_A_POD,
        )
        assert (found.tokens.cache_seconds, found.tokens.audiences) == (1.0, ("a", "b"))
        rights = found.rights
        assert (rights.authorized_seconds, rights.unauthorized_seconds, rights.front_proxy_seconds) == (2, 3, 240)
        open_paths = {"/metrics": True, "/open/a": True, "/metrics/a": False, "/opened": False, "/": False}
        assert {path: found.open_paths.hold(Attributes("get", path=path)) for path in open_paths} == open_paths
        assert not found.open_paths.hold(Attributes("get", resource="metrics"))
        assert found.ready_without_front_proxy
        assert found.warnings == ()

    @pytest.mark.parametrize(
        ("flag", "reason"),
        [
            ("--requestheader-allowed-names=a", "it needs --requestheader-client-ca-file"),
            ("--requestheader-uid-headers=a", "it needs --requestheader-client-ca-file"),
            ("--authentication-token-webhook-cache-ttl=1s", "no tokens are reviewed"),
            ("--api-audiences=a", "no tokens are reviewed"),
            ("--authentication-tolerate-lookup-failure", "nothing is read from the cluster"),
            ("--authorization-webhook-cache-authorized-ttl=1s", "no access is reviewed"),
            ("--authorization-webhook-cache-unauthorized-ttl=1s", "no access is reviewed"),
            ("--front-proxy-authorized-ttl=1s", "no access is reviewed"),
        ],
    )
    def test_a_flag_without_effect_beside_the_others_is_a_warning(self, flag: str, reason: str) -> None:
        (warning,) = identity(flag).warnings
        assert warning.startswith(f"{flag.partition('=')[0]} has no effect: {reason}")

    def test_one_ca_for_front_proxies_and_clients_needs_allowed_names(self, trust: Trust) -> None:
        ca_file = trust.front_proxies.ca_file
        flags = (f"--requestheader-client-ca-file={ca_file}", f"--client-ca-file={ca_file}")
        with pytest.raises(IdentitySettingsError, match="an authority in common"):
            identity(*flags)
        assert identity(*flags, "--requestheader-allowed-names=a").materials.current().front_proxy
