"""The shape of `prometheus:`: one connection, or a list of named ones. No message repeats a value: it may be secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import BOOLEAN, PATH, TEXT, TEXTS_MAY_BE_EMPTY, duration, validated_text
from adapter.foundation.documents.sections import Key, Section, mapping_of
from adapter.foundation.documents.shapes import ListOf, OneOf, WrongValueError
from adapter.foundation.documents.tree import MappingNode, SequenceNode
from adapter.foundation.promql.narrowing import Matchers, MatchersError
from adapter.foundation.sources.prometheus.errors import SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TIMEOUT_SECONDS: Final = 30.0
_NAME_FORM: Final = re.compile("[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _matchers(text: str) -> Matchers:
    try:
        return Matchers.read(text)
    except MatchersError as error:
        message, _, fix = str(error).partition(": ")
        raise WrongValueError(f"prometheus.matchers: {message}", fix) from None


def _settings(
    basic_auth: tuple[str | None, Path | None] = (None, None),
    headers: Mapping[str, str] | None = None,
    read_timeout_seconds: float = _TIMEOUT_SECONDS,
    **others: Any,  # noqa: ANN401 - those of PrometheusSettings
) -> PrometheusSettings:
    try:
        return PrometheusSettings(
            headers=tuple((headers or {}).items()),
            username=basic_auth[0],
            password_file=basic_auth[1],
            read_timeout_seconds=read_timeout_seconds,
            **others,
        )
    except SettingsError as error:
        message, _, fix = str(error).rpartition(": ")
        raise WrongValueError(message or str(error), fix if message else "correct prometheus") from None


_KEYS: Final = (
    Key("url", TEXT, "URL of Prometheus or of what answers like it.", "http://prometheus:9090"),
    Key("tokenFile", PATH, "File with a bearer token."),
    Key("caFile", PATH, "File with the certificates that sign the server's."),
    Key("certFile", PATH, "File with the client's certificate.", into="client_cert_file"),
    Key("keyFile", PATH, "File with the key of the client's certificate.", into="client_key_file"),
    Key(
        "basicAuth",
        Section(
            "prometheus.basicAuth",
            lambda username, password_file: (username, password_file),
            (
                Key("username", TEXT, "Name of the user.", "NAME"),
                Key("passwordFile", PATH, "File with the password.", "/path/to/password"),
            ),
        ),
        "Name and password.",
    ),
    Key(
        "headers",
        mapping_of("prometheus.headers", TEXTS_MAY_BE_EMPTY, TEXTS_MAY_BE_EMPTY),
        "Further headers of each request.",
    ),
    Key(
        "timeout",
        duration(0.001, 600),
        "Longest time without data from it, 30s without the key.",
        into="read_timeout_seconds",
    ),
    Key("matchers", TEXT.then(_matchers), "Label matchers that are added to each query."),
)
PROMETHEUS: Final = Section("prometheus", _settings, _KEYS)


def _named_settings(name: str, **others: Any) -> tuple[str, PrometheusSettings]:  # noqa: ANN401 - those of `_settings`
    return name, _settings(**others)


_NAME: Final = validated_text(
    "a name of a backend",
    lambda name: _NAME_FORM.fullmatch(name) is None,
    "write up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
)
BACKEND: Final = Section(
    "prometheus",
    _named_settings,
    (
        Key("name", _NAME, "Name of the backend, by which entries and rules choose it.", "eu"),
        *_KEYS,
        Key(
            "partialResponse",
            BOOLEAN,
            "What Thanos is to return: an error (false) or a partial answer (true), which is refused all the same.",
        ),
    ),
)
BACKENDS: Final = OneOf(
    {
        MappingNode: PROMETHEUS,
        SequenceNode: ListOf(
            BACKEND,
            dict,
            (
                "prometheus is an empty list",
                "list at least one backend, such as {name: eu, url: http://prometheus:9090}",
            ),
            unique=lambda named: f"the backend {named[0]}",
        ),
    }
)
