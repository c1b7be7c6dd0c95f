"""The bearer token of readers and the client certificate of the scheduler: which paths they protect, and from whom."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from adapter.commands.nodes.client_certificate import ClientCertificate
from adapter.commands.nodes.reader_access import LARGEST_UNAUTHENTICATED_BODY_BYTES, BearerToken, protected_routes
from adapter.foundation.web.http import Request, Response
from adapter.foundation.web.routes import Route
from adapter.metrics.identity.authorities import AuthorityFile
from demo.machine.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

PATHS = (
    "/watcher",
    "/watcher/<host>",
    "/watcher/health",
    "/nodes/unmapped",
    "/scores",
    "/hotspots",
    "/api/v1/query",
    "/scheduler/filter",
    "/healthz",
    "/metrics",
)
GOOD = (("Authorization", "Bearer first"),)


def answered(route: Route, request: Request) -> Response:
    """Return the answer as the web server gives it: a caller without access is refused before the body is read."""
    refusal = route.admit(request) if route.admit else None
    return refusal or route.handle(request)


def answers(
    request: Request, token: BearerToken | None = None, certificate: ClientCertificate | None = None
) -> dict[str, int]:
    """Return the status of each path for this request."""
    routes = protected_routes([Route(path, lambda _: Response(200, b"")) for path in PATHS], token, certificate)
    return {route.path: answered(route, request).status for route in routes}


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def test_a_token_protects_the_readers_and_neither_health_nor_the_scheduler(file: Path) -> None:
    refused = {path for path, status in answers(Request("GET", "/"), BearerToken(file)).items() if status == 401}
    assert refused == set(PATHS) - {"/watcher/health", "/scheduler/filter", "/healthz", "/metrics"}
    assert set(answers(Request("GET", "/", headers=GOOD), BearerToken(file)).values()) == {200}


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer second", "Basic first", "Bearer first second", "Bearer fir", "Bearer \udce4"],
)
def test_any_other_token_is_refused(file: Path, header: str) -> None:
    assert answers(Request("GET", "/", headers=(("Authorization", header),)), BearerToken(file))["/watcher"] == 401


def test_a_refusal_has_its_reason_in_the_format_of_the_path(file: Path) -> None:
    routes = protected_routes([Route(path, lambda _: Response(200, b"")) for path in PATHS], BearerToken(file), None)
    bodies = {route.path: answered(route, Request("GET", route.path)) for route in routes}
    assert bodies["/scores"].body == (
        b'{"apiVersion":"tidewatch.io/v1alpha1","kind":"Error","message":"a bearer token is required"}\n'
    )
    assert bodies["/api/v1/query"].body == (
        b'{"status":"error","errorType":"unauthorized","error":"a bearer token is required"}\n'
    )
    assert bodies["/scores"].headers == (("WWW-Authenticate", "Bearer"),)


def test_a_replaced_token_takes_effect_and_an_unusable_one_is_ignored(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = [0.0]
    token = BearerToken(file, clock=lambda: seconds[0])
    for content, accepted in (("second", "second"), ("", "second"), ("a\nb", "second"), ("third", "third")):
        file.write_text(content)
        seconds[0] += 2.0
        assert token.problem(Request("GET", "/", headers=(("Authorization", f"Bearer {accepted}"),))) is None
        assert token.problem(Request("GET", "/", headers=GOOD)) == "the bearer token is not valid"
    assert len(caplog.messages) == 2
    assert "second" not in caplog.text


def chain_of(authority: Authority, name: str) -> tuple[bytes, ...]:
    certificates = x509.load_pem_x509_certificates(authority.client(name).certificate_file.read_bytes())
    return tuple(certificate.public_bytes(Encoding.DER) for certificate in certificates)


def test_the_scheduler_needs_a_valid_certificate_of_a_ca_in_the_file(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "others", "others")
    now = [datetime.now(tz=UTC)]
    certificate = ClientCertificate(AuthorityFile(ours.ca_file).current, lambda: now[0])
    good = Request("POST", "/", peer_chain=chain_of(ours, "scheduler"))
    assert certificate.problem(good) is None
    assert certificate.problem(Request("POST", "/")) == "a client certificate is required"
    assert certificate.problem(Request("POST", "/", peer_chain=chain_of(others, "scheduler"))) == (
        "the client certificate was issued by another CA"
    )
    now[0] += timedelta(days=20_000)
    assert certificate.problem(good) == "the client certificate, or one above it, is expired or not valid yet"


def test_with_only_a_token_bodies_for_the_scheduler_paths_are_limited(file: Path, tmp_path: Path) -> None:
    """Whole Node objects are accepted only with a client CA, which makes the sender known before they are read."""
    large = 64 * 2**20
    paths = ("/scheduler/filter", "/scheduler/<policy>/prioritize", "/api/v1/query")
    routes = [Route(path, lambda _: Response(200, b""), largest_body_bytes=large) for path in paths]
    certificate = ClientCertificate(AuthorityFile(Authority(tmp_path / "ours", "ours").ca_file).current)
    token = BearerToken(file)

    def largest(token: BearerToken | None, certificate: ClientCertificate | None) -> list[int]:
        return [route.largest_body_bytes for route in protected_routes(routes, token, certificate)]

    assert largest(token, None) == [LARGEST_UNAUTHENTICATED_BODY_BYTES, LARGEST_UNAUTHENTICATED_BODY_BYTES, large]
    assert largest(token, certificate) == largest(None, None) == largest(None, certificate) == [large] * 3


def test_a_client_certificate_protects_only_the_scheduler_paths(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours", "ours")
    certificate = ClientCertificate(AuthorityFile(ours.ca_file).current)
    refused = [path for path, status in answers(Request("POST", "/"), certificate=certificate).items() if status == 401]
    assert refused == ["/scheduler/filter"]
