"""`explain --server`: a question that a running server answers, and its answer as it is printed here."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads the annotation when it decodes
from typing import TYPE_CHECKING

import msgspec

from adapter.readings.explanation import ExplainedValue, Explanation, Outcome, Step, Verdict
from adapter.service.flag_table import PATH, TEXT, Flag
from adapter.service.flags import UsageError
from adapter.sources.kubernetes.client import Deadlines, KubernetesClient
from adapter.sources.kubernetes.direct import DirectServer, direct_access
from adapter.sources.kubernetes.errors import UnexpectedAnswerError

if TYPE_CHECKING:
    from adapter.service.flag_table import FlagValues

PATH_ON_SERVER = "/debug/explain"
_GROUP = "Running server"
_DEADLINES = Deadlines(connect=5.0, silence=15.0, total=20.0)
"""The server itself takes five seconds at most."""
_BY_ITSELF = ("config", "objects", "prometheus-url")
"""Flags that say what a command which asks no server needs."""

SERVER_FLAGS: tuple[Flag, ...] = (
    Flag(
        name="server",
        kind=TEXT,
        help=(
            "Have it explained by a running `serve`: https://HOST[:PORT] of its TLS port, such as "
            "https://tidewatch.monitoring.svc:443. It tells beside what it remembers: who asked, what is in memory. "
            "You need the right to read that very metric."
        ),
        group=_GROUP,
    ),
    Flag(
        name="server-ca-file",
        kind=PATH,
        help="CA that vouches for it (default: those of the system). Nothing is sent unless it does.",
        group=_GROUP,
    ),
    Flag(
        name="server-name",
        kind=TEXT,
        help="Whom its certificate is for, where that is not HOST, as through kubectl port-forward.",
        group=_GROUP,
    ),
    Flag(
        name="server-token-file",
        kind=PATH,
        help="Your bearer token (default: token or client certificate of --kubeconfig and --context).",
        group=_GROUP,
    ),
)


def asked_of_server(values: FlagValues) -> Explanation:
    """Return what the server says. Raises UsageError, and KubernetesError where it cannot be asked or says no."""
    for name in _BY_ITSELF:
        if name in values.given:
            raise UsageError(f"--{name} is the server's own matter: leave it out beside --server")
    client = KubernetesClient(direct_access(_server(values)), _DEADLINES)
    return explanation_of(client.get(PATH_ON_SERVER, _parameters(values)))


def explanation_of(body: bytes) -> Explanation:
    """Return the explanation that a document holds. Raises UnexpectedAnswerError."""
    try:
        document = msgspec.json.decode(body, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"GET {PATH_ON_SERVER}: what answers is no tidewatch-adapter: its answer is no Explanation"
        raise UnexpectedAnswerError(message) from error
    return Explanation(
        metric=document.metric,
        namespace=document.namespace,
        object=document.object,
        verdict=document.verdict,
        cause=document.cause,
        fix=document.fix,
        rule=document.rule,
        query=document.query,
        steps=tuple(Step(step.step, step.outcome, step.detail) for step in document.steps),
        values=tuple(
            ExplainedValue(one.object, one.value, one.timestamp.timestamp() if one.timestamp else None, one.age_seconds)
            for one in document.values
        ),
    )


def _server(values: FlagValues) -> DirectServer:
    kubeconfig, token_file = values.path("kubeconfig"), values.path("server-token-file")
    if token_file is None and kubeconfig is None and not values.text("context"):
        raise UsageError("--server needs to know who asks: give --server-token-file, or --kubeconfig")
    return DirectServer(
        url=values.text("server"),
        ca_file=values.path("server-ca-file"),
        name=values.text("server-name") or None,
        token_file=token_file,
        kubeconfig=None if kubeconfig is None else str(kubeconfig),
        context=values.text("context") or None,
    )


def _parameters(values: FlagValues) -> dict[str, str]:
    named = ("namespace", "object", "selector", "api")
    said = {"metric": values.arguments[0], **{name: values.text(name) for name in named}}
    return {name: text for name, text in said.items() if text}


class _Step(msgspec.Struct, frozen=True):
    step: str
    outcome: Outcome
    detail: str


class _Value(msgspec.Struct, frozen=True):
    object: str
    value: float
    timestamp: datetime | None
    age_seconds: float | None


class _Document(msgspec.Struct, frozen=True, tag_field="kind", tag="Explanation"):
    metric: str
    namespace: str | None
    object: str | None
    verdict: Verdict
    cause: str
    fix: str
    rule: str | None
    query: str | None
    steps: list[_Step]
    values: list[_Value]
