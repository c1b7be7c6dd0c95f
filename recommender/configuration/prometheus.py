"""The shape of `prometheus:`. Messages never repeat a value, which may be a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import PATH, TEXT, TEXTS_MAY_BE_EMPTY, duration
from adapter.foundation.documents.sections import Key, Section, mapping_of
from adapter.foundation.documents.shapes import WrongValueError
from adapter.foundation.promql.narrowing import Matchers, MatchersError
from adapter.foundation.sources.prometheus.errors import SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TIMEOUT_SECONDS: Final = 30.0


def _matchers(text: str) -> Matchers:
    try:
        return Matchers.read(text)
    except MatchersError as error:
        message, _, fix = str(error).partition(": ")
        raise WrongValueError(f"prometheus.matchers: {message}", fix) from None


def _basic_auth(username: str, password_file: Path) -> tuple[str, Path]:
    return username, password_file


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


PROMETHEUS: Final = Section(
    "prometheus",
    _settings,
    (
        Key("url", TEXT, "URL of Prometheus or of what answers like it.", "http://prometheus:9090"),
        Key("tokenFile", PATH, "File with a bearer token."),
        Key("caFile", PATH, "File with the certificates that sign the server's."),
        Key("certFile", PATH, "File with the client's certificate.", into="client_cert_file"),
        Key("keyFile", PATH, "File with the key of the client's certificate.", into="client_key_file"),
        Key(
            "basicAuth",
            Section(
                "prometheus.basicAuth",
                _basic_auth,
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
            "How long an answer may take, 30s without the key.",
            into="read_timeout_seconds",
        ),
        Key("matchers", TEXT.then(_matchers), "Label matchers that are added to each query."),
    ),
)
