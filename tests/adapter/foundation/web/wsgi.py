"""Calls WSGI applications as gunicorn does."""

from __future__ import annotations

from typing import TYPE_CHECKING
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import WSGIApplication, WSGIEnvironment


def environ(method: str, target: str, **more: object) -> WSGIEnvironment:
    """Return the environment that a server passes for a request without a body."""
    made: WSGIEnvironment = {"REQUEST_METHOD": method, "RAW_URI": target, "QUERY_STRING": target.partition("?")[2]}
    made |= {"SCRIPT_NAME": "", "PATH_INFO": target.partition("?")[0]}
    made.update(more)
    setup_testing_defaults(made)
    return made


def call(application: WSGIApplication, environ: WSGIEnvironment) -> tuple[str, dict[str, str], bytes]:
    """Call an application as a server does, with every check of wsgiref's validator."""
    started: list[tuple[str, dict[str, str]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> object:
        assert exc_info is None
        started.append((status, dict(headers)))
        return lambda _: None

    body: Iterable[bytes] = validator(application)(environ, start_response)  # type: ignore[arg-type] # no write() is used
    read = b"".join(body)
    body.close()  # type: ignore[attr-defined] # the validator's iterator has it
    return (*started[0], read)
