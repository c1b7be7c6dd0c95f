"""`explain --server`: a question that a running server answers, and its answer as it is printed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.commands.program import PROGRAM
from adapter.readings.explain.explanation import NoExplanationError, explanation_of
from adapter.service.flags.parsing import UsageError
from adapter.service.flags.table import PATH, TEXT, Flag
from adapter.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.sources.kubernetes.direct import DirectServer, direct_access
from adapter.sources.kubernetes.errors import KubernetesError, UnreachableError

if TYPE_CHECKING:
    from adapter.readings.explain.explanation import Explanation
    from adapter.service.flags.table import FlagValues

PATH_ON_SERVER = "/debug/explain"
_GROUP = "Running server"
_DEADLINES = RequestDeadlines(connect=5.0, silence=15.0, total=20.0)
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
    """Return what the server says.

    Raises UsageError, with its address and what to do, where it cannot be asked or says no; KubernetesError where who
    asks cannot be told.
    """
    for name in _BY_ITSELF:
        if name in values.given:
            raise UsageError(f"--{name} is the server's own matter: leave it out beside --server")
    client = KubernetesClient(direct_access(_server(values)), _DEADLINES)
    try:
        return _asked(client, values)
    except (UsageError, KubernetesError) as error:
        raise UsageError(f"{values.text('server')}: {error}") from error


def _asked(client: KubernetesClient, values: FlagValues) -> Explanation:
    try:
        return explanation_of(client.get(PATH_ON_SERVER, _parameters(values)))
    except NoExplanationError as error:
        message = f"the server is not {PROGRAM}, because its answer is not an Explanation: check --server"
        raise UsageError(message) from error
    except UnreachableError as error:
        raise UsageError(f"{error}: {_repair(str(error))}") from error


def _repair(problem: str) -> str:
    """Return what to do about a server that cannot be reached. OpenSSL's words are all that is left of its reason."""
    if "TLS: " not in problem:
        return "look at --server, and whether its port is reachable"
    if "mismatch" in problem or "not valid for" in problem:
        return "say whom its certificate is for by --server-name"
    return "give the CA by --server-ca-file"


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
