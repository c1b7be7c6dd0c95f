"""`prometheus:` of the configuration. Messages never repeat a value, which may be a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.documents.fields import MappingReader, mapping_of
from adapter.documents.tree import DocumentError
from adapter.sources.prometheus.errors import SettingsError
from adapter.sources.prometheus.settings import PrometheusSettings
from recommender.configuration.scalars import duration, path, text

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.documents.tree import DocumentProblem, Node

_KEYS: Final = ("url", "tokenFile", "caFile", "certFile", "keyFile", "basicAuth", "headers", "timeout")
_BASIC_AUTH: Final = ("username", "passwordFile")
_TIMEOUT_SECONDS: Final = 30.0


def read_prometheus(node: Node, problems: list[DocumentProblem]) -> PrometheusSettings | None:
    """Return the connection; None after a problem."""
    before = len(problems)
    fields = MappingReader(mapping_of(node, "prometheus", _KEYS), _KEYS, problems, path="prometheus")
    url = fields.require("url", text, "", "http://prometheus:9090")
    username, password_file = fields.read("basicAuth", lambda each: _basic_auth(each, problems), (None, None))
    files = {key: fields.read(key, path, None) for key in ("tokenFile", "caFile", "certFile", "keyFile")}
    headers = fields.read("headers", _headers, ())
    timeout = fields.read("timeout", duration(0.001, 600), _TIMEOUT_SECONDS)
    if len(problems) > before:
        return None
    try:
        return PrometheusSettings(
            url=url,
            ca_file=files["caFile"],
            client_cert_file=files["certFile"],
            client_key_file=files["keyFile"],
            token_file=files["tokenFile"],
            headers=headers,
            username=username,
            password_file=password_file,
            read_timeout_seconds=timeout,
        )
    except SettingsError as error:
        message, _, fix = str(error).rpartition(": ")
        problems.append(node.problem(message or str(error), fix if message else "correct prometheus"))
        return None


def _basic_auth(node: Node, problems: list[DocumentProblem]) -> tuple[str | None, Path | None]:
    where = "prometheus.basicAuth"
    fields = MappingReader(mapping_of(node, where, _BASIC_AUTH), _BASIC_AUTH, problems, path=where)
    username = fields.require("username", text, "", "NAME")
    password_file = fields.require("passwordFile", path, None, "/path/to/password")
    return username, password_file


def _headers(node: Node) -> tuple[tuple[str, str], ...]:
    headers = []
    for entry in mapping_of(node, "prometheus.headers", ("NAME: VALUE",)).entries:
        try:
            headers.append((entry.name, entry.value.text()))
        except DocumentError:
            message = f"the header {entry.name!r} is not a text"
            raise DocumentError(entry.value.problem(message, "write it in quotes")) from None
    return tuple(headers)
