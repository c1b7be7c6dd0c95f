"""A process under test: `serve_forever` around a small application that can be slow, large or broken.

The argument is JSON: `certificate`, `key`, `client_cas`, and optionally `tls` (true), `address`, `plain`, `threads`,
`deadlines`, `connections`, `answers`, `bodies`,
`reserved_threads`, `tls_optional`, `shutdown_delay_seconds`, `drain_seconds`, `journal` (a file that gets a line for
every step of the end), `stopping_until` (a file without which what happens as soon as the end begins goes on), `start`
(how `make_worker` goes: `well`, `refused`, `broken`), `start_after` (a file without which it does not begin),
`pin_cpu`.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
import socket
import ssl
import sys
import tempfile
import threading
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.logs import configure_logs
from adapter.foundation.service.server.addresses import parse_address
from adapter.foundation.service.server.connections.bodies import BodyLimits, BodyPlan
from adapter.foundation.service.server.connections.outgoing import OutgoingLimits
from adapter.foundation.service.server.connections.stages import Deadlines
from adapter.foundation.service.server.process import WsgiApp, serve_forever
from adapter.foundation.service.server.server_settings import ConnectionLimits, ServerOptions
from adapter.foundation.service.server.tls import TlsSettings
from adapter.foundation.web.http import Response
from adapter.foundation.web.routes import Route
from adapter.foundation.web.wsgi import wsgi_application
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from threading import Event

    from adapter.foundation.service.server.connections.bodies import Head
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.web.http import Request

_LONGEST_SECONDS = 3600.0
SHARED = b"s" * 400_000
"""A body that is prepared once, as bodies of metric lists are."""


def pattern(count: int) -> bytes:
    """Return bytes in which each group of four states its own position, so that missing ones are noticed."""
    return array("I", range(count // 4)).tobytes()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer in one of the ways that WSGI knows."""
    match environ["PATH_INFO"]:
        case "/body" | "/known":
            return routed(environ, start_response)
        case "/half":
            return half_an_answer(start_response)
        case "/chunks":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"hello", b"!"]
        case _:
            return whole_answer(environ, start_response)


def whole_answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Do what the path says, and answer with the facts of the request."""
    query = parse_qs(environ["QUERY_STRING"])
    body = b""
    match environ["PATH_INFO"]:
        case "/held":
            until(Path(query["until"][0]).exists, _LONGEST_SECONDS)
        case "/crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "/fail":
            raise RuntimeError("the application is broken")
        case "/big":
            body = b"x" * int(query["bytes"][0])
        case "/pattern":
            body = pattern(int(query["bytes"][0]))
        case "/shared":
            body = SHARED
        case "/read":
            body = environ["wsgi.input"].read()
        case _:
            body = facts_of(environ)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


LARGEST_BODY_BYTES = 100_000
LARGEST_KNOWN_BYTES = 2_000_000


def refuse_unknown_client(request: Request) -> Response | None:
    return None if request.peer_chain else Response(401, b"who is there?")


ROUTES = (
    Route("/body", lambda request: Response(200, bytes(request.body)), ("POST",), LARGEST_BODY_BYTES),
    Route(
        "/known",
        lambda request: Response(200, bytes(request.body)),
        ("POST",),
        LARGEST_KNOWN_BYTES,
        refuse_unknown_client,
    ),
)


def plan_body(head: Head) -> BodyPlan | None:
    """Receive bodies for `/known` and `/held` in advance, if the client has a certificate."""
    is_planned = head.target.partition("?")[0] in {"/known", "/held"} and head.peer_chain
    return BodyPlan(LARGEST_KNOWN_BYTES, LARGEST_KNOWN_BYTES) if is_planned else None


routed = wsgi_application(lambda _: Response(404, b"{}"), routes=ROUTES)
"""The WSGI application that programs use, with a route that accepts bodies."""


def half_an_answer(start_response: Callable[..., Any]) -> Iterator[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "10")])
    yield b"12345"
    raise RuntimeError("the answer broke off")


def facts_of(environ: dict[str, Any]) -> bytes:
    facts = {
        "headers": environ["tidewatch.headers"],
        "chain": [certificate.hex() for certificate in environ["tidewatch.peer_chain"]],
        "raw_uri": environ["RAW_URI"],
        "scheme": environ["wsgi.url_scheme"],
        "pid": os.getpid(),
        "cpus": len(os.sched_getaffinity(0)),
        "no_delay": environ["gunicorn.socket"].sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
    }
    return json.dumps(facts).encode()


def make_worker(settings: dict[str, Any], context: WorkerContext) -> WsgiApp:
    """Build the worker as the settings say."""
    until(Path(settings.get("start_after", os.devnull)).exists, _LONGEST_SECONDS)
    if settings.get("start") == "refused":
        raise StartError("the memory is locked: try again")
    if settings.get("start") == "unusable":
        raise UsageError("adapter.yaml:3: this cannot be read: say something else")
    if settings.get("start") == "broken":
        raise RuntimeError("something unforeseen")
    journal = Path(settings.get("journal", os.devnull))

    def note(line: str) -> None:
        with journal.open("a") as file:
            file.write(f"{line}\n")

    def until_stopped(stop: Event) -> None:
        note("task started")
        while not stop.wait(10):
            pass
        note("task stopped")

    context.tasks.running("watch", until_stopped)
    context.plan_body = plan_body

    def let_go() -> None:
        note("stopping")
        until(Path(settings.get("stopping_until", os.devnull)).exists, _LONGEST_SECONDS)

    context.on_stopping(lambda: note("stopping last"))
    context.on_stopping(let_go)
    context.on_stop(lambda: note("released first"))
    context.on_stop(lambda: note("released last"))
    return application


def allow_threads(most: int) -> None:
    """Let the system refuse every thread after this many, as a limit on processes does; the log's does not count."""
    start, left = threading.Thread.start, iter(range(most))

    def start_or_refuse(self: threading.Thread) -> None:
        if self.name != "log" and next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(self)

    threading.Thread.start = start_or_refuse  # type: ignore[method-assign]


def refuse_forks(refused: Container[int], threadless: Container[int]) -> None:
    """Let the system refuse some forks, or every thread in their processes, as a limit on processes does.

    The forks are counted from 0.
    """
    fork, numbers = os.fork, itertools.count()

    def fork_or_refuse() -> int:
        number = next(numbers)
        if number in refused:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        pid = fork()
        if pid == 0 and number in threadless:
            allow_threads(0)
        return pid

    os.fork = fork_or_refuse


def refuse_signs_of_life(number: int) -> None:
    """Let the system refuse the file of a worker's sign of life, with this error."""
    create = os.memfd_create

    def create_or_refuse(name: str, flags: int = os.MFD_CLOEXEC) -> int:
        if name == "sign-of-life":
            raise OSError(number, os.strerror(number))
        return create(name, flags)

    os.memfd_create = create_or_refuse


def refuse_temporary_files() -> None:
    """Let no folder be writable."""

    def refuse(*_arguments: object, **_named: object) -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    tempfile.mkstemp = refuse


def main() -> None:
    settings = json.loads(sys.argv[1])
    if "most_threads" in settings:
        allow_threads(settings["most_threads"])
    refuse_forks(settings.get("refused_forks", ()), settings.get("threadless_forks", ()))
    if "no_sign_of_life" in settings:
        refuse_signs_of_life(settings["no_sign_of_life"])
    if settings.get("no_temporary_files"):
        refuse_temporary_files()
    configure_logs(level=settings.get("level", "info"), queued=True)
    trusted = frozenset(ssl.PEM_cert_to_DER_cert(Path(file).read_text()) for file in settings["client_cas"])
    tls = TlsSettings(
        certificate_file=Path(settings["certificate"]),
        key_file=Path(settings["key"]),
        client_authorities=lambda: trusted,
        is_optional=settings.get("tls_optional", False),
    )
    options = ServerOptions(
        program="example-server",
        version="1.2.3",
        metrics_prefix="example",
        address=parse_address(settings.get("address", "127.0.0.1:0")),
        tls=tls if settings.get("tls", True) else None,
        plain_address=parse_address(settings.get("plain", "127.0.0.1:0")),
        threads=settings.get("threads", 4),
        shutdown_delay_seconds=settings.get("shutdown_delay_seconds", 0.0),
        drain_seconds=settings.get("drain_seconds", 5.0),
        deadlines=Deadlines(**settings.get("deadlines", {})),
        connections=ConnectionLimits(**settings.get("connections", {})),
        answers=OutgoingLimits(**settings.get("answers", {})),
        bodies=BodyLimits(**settings.get("bodies", {})),
        reserved_threads=settings.get("reserved_threads", 0),
        pin_cpu=settings.get("pin_cpu", False),
    )
    serve_forever(options, lambda context: make_worker(settings, context))


if __name__ == "__main__":
    main()
