"""Requests over real TLS to a real process."""

from __future__ import annotations

import contextlib
import re
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from adapter.foundation.service.server.connections.heads import LARGEST_HEAD
from demo.machine.files import replace_file
from tests.adapter.foundation.service.example_server import LARGEST_BODY_BYTES
from tests.adapter.foundation.service.servers import (
    Certificates,
    Server,
    get,
    is_closed,
    read_answer,
    read_head,
    running_server,
    send_head,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


def test_header_lines_arrive_one_by_one_and_as_they_were_sent(server: Server) -> None:
    with server.connect() as sock:
        lines = ["X-Remote-Group: a,system:masters", "x-remote-group:  b ", "X_Remote_Group: c", "X-Remote-User: \xe9"]
        _, facts = get(sock, "/facts", *lines)
    assert facts["headers"][1:] == [
        ["X-Remote-Group", "a,system:masters"],
        ["x-remote-group", "b"],
        ["X_Remote_Group", "c"],
        ["X-Remote-User", "\xe9"],
    ]


def test_a_request_with_fifteen_hundred_groups_is_accepted(server: Server) -> None:
    with server.connect() as sock:
        status, facts = get(sock, "/facts", *[f"X-Remote-Group: group-{number}" for number in range(1500)])
    assert (status, len(facts["headers"])) == (200, 1501)


def test_the_request_target_stays_as_it_was_sent(server: Server) -> None:
    with server.connect() as sock:
        _, facts = get(sock, "/facts/%2a/a%2Fb?labelSelector=app%3Dx&x=%zz")
    assert facts["raw_uri"] == "/facts/%2a/a%2Fb?labelSelector=app%3Dx&x=%zz"
    assert facts["scheme"] == "https"


def test_a_client_certificate_comes_with_its_verified_chain(server: Server, certificates: Certificates) -> None:
    with server.connect(server.client_context(certificates.client)) as sock:
        chains = [get(sock)[1]["chain"] for _ in range(2)]
    assert chains[0] == [certificate.hex() for certificate in certificates.client.chain]
    assert chains[1] == chains[0]


def test_without_a_client_certificate_there_is_no_chain(server: Server) -> None:
    with server.connect() as sock:
        assert get(sock)[1]["chain"] == []


def test_a_certificate_of_another_authority_ends_the_connection(server: Server, certificates: Certificates) -> None:
    other = certificates.authority.client("front-proxy-client")
    with (
        pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca"),
        server.connect(server.client_context(other)) as sock,
    ):
        get(sock)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("first_stays_open", [True, False])
def test_a_tls_session_is_never_resumed(
    server: Server, certificates: Certificates, version: ssl.TLSVersion, *, first_stays_open: bool
) -> None:
    context = server.client_context(certificates.client)
    context.maximum_version = version
    with server.connect(context) as first:
        get(first)
        session = first.session
        if not first_stays_open:
            send_head(first, "/facts", "Connection: close")
            read_answer(first)
            with contextlib.suppress(OSError):
                first.unwrap()
        with server.connect(context, session) as second:
            _, facts = get(second)
            assert not second.session_reused
            assert len(facts["chain"]) == 3


def test_alpn_offers_http_1_1(server: Server) -> None:
    context = server.client_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with server.connect(context) as sock:
        assert sock.selected_alpn_protocol() == "http/1.1"


def test_a_client_without_a_protocol_in_common_is_served_http_1_1(server: Server) -> None:
    context = server.client_context()
    context.set_alpn_protocols(["h2"])
    with server.connect(context) as sock:
        assert get(sock)[0] == 200


def test_a_connection_is_kept_for_many_requests(server: Server) -> None:
    with server.connect() as sock:
        assert [get(sock, f"/facts?{number}")[1]["raw_uri"] for number in range(20)] == [
            f"/facts?{number}" for number in range(20)
        ]


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    with server.connect() as sock:
        heads = [f"GET /facts?{number} HTTP/1.1\r\nHost: localhost\r\n\r\n" for number in range(30)]
        whole = "".join(heads).encode()
        sock.sendall(whole[:-9])
        answers = [read_answer(sock) for _ in range(29)]
        sock.sendall(whole[-9:])
        answers.append(read_answer(sock))
    assert [f'"/facts?{number}"'.encode() in body for number, (_, body) in enumerate(answers)] == [True] * 30


def test_a_head_may_come_byte_by_byte(server: Server) -> None:
    with server.connect() as sock:
        for byte in b"\r\nGET /facts HTTP/1.1\r\nHost: localhost\r\n\r\n":
            sock.sendall(bytes([byte]))
        assert read_answer(sock)[0] == 200


def test_a_body_that_is_read_leaves_the_connection_open(server: Server) -> None:
    with server.connect() as sock:
        for body in (b"hello", b"x" * 200_000):
            sock.sendall(b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
            sock.sendall(body)
            assert read_answer(sock) == (200, body)


def test_a_body_in_chunks_is_read(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(b"POST /read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        sock.sendall(b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n")
        assert read_answer(sock) == (200, b"hello!")
        assert get(sock)[0] == 200


@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: %d\r\n\r\n%s", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"],
    ids=["whole", "in chunks"],
)
def test_a_body_up_to_the_largest_size_of_its_route_is_answered_and_the_connection_kept(
    server: Server, framing: bytes
) -> None:
    with server.connect() as sock:
        for body in (b"hello", b"x" * LARGEST_BODY_BYTES):
            sock.sendall(b"POST /body HTTP/1.1\r\nHost: localhost\r\n" + framing % (len(body), body))
            assert read_answer(sock) == (200, body)


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b"Content-Length: 100001\r\n\r\n", 413),
        (b"Transfer-Encoding: chunked\r\n\r\n186a1\r\n" + b"x" * 100_001 + b"\r\n", 413),
        (b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_001, 413),
        (b"Transfer-Encoding: chunked\r\n\r\nno number\r\n\r\n", 400),
    ],
    ids=["declared", "one chunk", "many chunks", "malformed"],
)
def test_a_body_that_its_route_does_not_accept_is_refused_and_the_connection_closed(
    server: Server, rest: bytes, status: int
) -> None:
    with server.connect() as sock:
        sock.sendall(b"POST /body HTTP/1.1\r\nHost: localhost\r\n" + rest)
        assert read_answer(sock)[0] == status
        assert is_closed(sock)


def test_a_method_that_a_route_does_not_accept_is_405(server: Server) -> None:
    with server.connect() as sock:
        send_head(sock, "/body")
        assert read_answer(sock) == (405, b"GET is not allowed here: use POST\n")
        assert get(sock)[0] == 200


def test_a_body_that_is_left_unread_closes_the_connection_after_the_answer(server: Server) -> None:
    with server.connect() as sock:
        send_head(sock, "/facts", "Content-Length: 100000")
        assert read_answer(sock)[0] == 200
        assert is_closed(sock)


def test_a_body_that_is_left_unread_is_answered_with_connection_close(server: Server) -> None:
    """Without this notice, the client would send its next request on the same connection and lose it."""
    with server.connect() as sock:
        send_head(sock, "/facts", "Content-Length: 100000")
        assert b"\r\nConnection: close\r\n" in read_head(sock)


def test_a_body_that_is_malformed_and_left_unread_closes_the_connection_after_the_answer(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(b"POST /facts HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n\r\n")
        assert read_answer(sock)[0] == 200
        assert is_closed(sock)


def test_connection_close_closes_the_connection(server: Server) -> None:
    with server.connect() as sock:
        send_head(sock, "/facts", "Connection: close")
        assert read_answer(sock)[0] == 200
        assert is_closed(sock)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /facts HTTP/1.1\nHost: localhost\n\n", 400),
        (b"GET /facts HTTP/1.1\r\nHost: localhost\r\nX: y\n\r\n", 400),
        (b"GET /facts HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /facts HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET /facts HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET /facts HTTP/1.1\r\nX-Remote-User : root\r\n\r\n", 400),
        (b"GET /facts HTTP/1.1\r\nX-A: b\r\n folded\r\n\r\n", 400),
        (b"GET /facts HTTP/3.0\r\nHost: a\r\n\r\n", 400),
        (b"GET /facts HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: tea\r\n\r\n", 501),
        (b"GET /facts HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 2001 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nX-A: " + b"b" * 9000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X-A: " + b"b" * (LARGEST_HEAD + 1), 431),
    ],
)
def test_an_invalid_request_is_refused_in_plain_text(server: Server, request_bytes: bytes, status: int) -> None:
    with server.connect() as sock:
        sock.sendall(request_bytes)
        assert read_answer(sock)[0] == status
        assert is_closed(sock)


def test_an_application_that_raises_is_a_500_and_a_line_in_the_log(server: Server) -> None:
    with server.connect() as sock:
        send_head(sock, "/fail")
        assert read_answer(sock) == (500, b"internal error\n")
    # The line is written by another thread than the answer.
    until(lambda: "the application is broken" in server.log)


def test_an_answer_that_breaks_off_is_a_500_and_closes_only_its_connection(server: Server) -> None:
    with server.connect() as other:
        before = get(other)[1]["pid"]
        with server.connect() as sock:
            send_head(sock, "/half")
            assert read_answer(sock) == (500, b"internal error\n")
            assert is_closed(sock)
        assert get(other)[1]["pid"] == before


def test_http_on_the_tls_port_is_answered_with_an_explanation(server: Server) -> None:
    with server.tcp() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(sock) == (400, b"an HTTP request was sent to an HTTPS port\n")


def test_a_new_certificate_is_used_for_new_connections_while_old_ones_continue(
    tmp_path: Path, certificates: Certificates
) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    first, second = certificates.server, certificates.authority.server(("localhost", "newer.example"))
    certificate.write_bytes(first.certificate_file.read_bytes())
    key.write_bytes(first.key_file.read_bytes())
    with running_server(tmp_path, certificates, certificate=str(certificate), key=str(key)) as server:
        with server.connect() as old:
            get(old)
            # The certificate first: for a moment the two do not belong together, and the last good pair is shown.
            replace_file(certificate, second.certificate_file.read_text())
            assert newest_name(server) == "localhost"
            replace_file(key, second.key_file.read_text())
            until(lambda: newest_name(server) == "newer.example")
            assert get(old)[0] == 200
        metrics = server.plain("/metrics")[1]
    assert server.log.count("the last good ones stay in use") == 1
    assert 'example_tls_reloads_total{result="success"} 1.0' in metrics
    assert 'example_tls_reloads_total{result="failure"} 1.0' in metrics


def newest_name(server: Server) -> str:
    with server.connect() as sock:
        shown = x509.load_der_x509_certificate(sock.getpeercert(binary_form=True) or b"")
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName)[-1]


def test_without_tls_the_same_application_is_served_over_http(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates, tls=False) as server, server.tcp() as sock:
        facts = [get(sock)[1] for _ in range(3)]
    assert [(each["scheme"], each["chain"]) for each in facts] == [("http", [])] * 3


def test_requests_beyond_the_limit_get_429_and_probes_are_still_answered(
    tmp_path: Path, certificates: Certificates
) -> None:
    answered = tmp_path / "answered"
    with running_server(tmp_path, certificates, threads=4, connections={"most_requests": 2}) as server:
        with server.connect() as first, server.connect() as second, server.connect() as third:
            for busy in (first, second):
                send_head(busy, f"/held?until={answered}")
            until(lambda: connections_in(server, "request") == 2)
            assert get(third, "/livez")[0] == 200
            send_head(third, "/facts")
            head = read_head(third)
            assert head.startswith(b"HTTP/1.1 429 ")
            # A client of the HPA controller would sleep on it.
            assert b"retry-after" not in head.lower()
            answered.touch()
            assert [read_answer(busy)[0] for busy in (first, second)] == [200, 200]
        with server.connect() as again:
            assert get(again)[0] == 200


def connections_in(server: Server, stage: str) -> float:
    _, text = server.plain("/metrics")
    return float(re.findall(rf'connections{{stage="{stage}"}} (\S+)', text)[0])
