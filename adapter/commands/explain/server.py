"""`explain --server`: asks a running server for its explanation."""

from __future__ import annotations

from adapter.commands.program import PROGRAM
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import PATH, TEXT, Flag, FlagValues, in_group
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.own_server_access import DirectServer, direct_access
from adapter.foundation.sources.kubernetes.errors import ConfigurationError, KubernetesError, UnreachableError
from adapter.metrics.readings.explain.explanation import Explanation, NoExplanationError, explanation_of

PATH_ON_SERVER = "/debug/explain"
_GROUP = "Running server"
_DEADLINES = RequestDeadlines(connect=5.0, silence=15.0, total=20.0)
"""Deadlines of the request; the server itself takes at most five seconds."""
_BY_ITSELF = ("config", "objects", "prometheus-url")
"""Flags that have no meaning together with --server."""

SERVER_FLAGS: tuple[Flag, ...] = in_group(
    _GROUP,
    Flag(
        "server",
        TEXT,
        "Ask a running `serve` for the explanation: https://HOST[:PORT] of its TLS port, such as "
        "https://tidewatch-adapter.monitoring.svc:443. It also reports what it remembers: who asked, and what is "
        "in memory. You need the right to read that metric.",
    ),
    Flag(
        "server-ca-file",
        PATH,
        "CA bundle to verify the server with (default: the system's). Nothing is sent to an unverified server.",
    ),
    Flag(
        "server-name", TEXT, "Name in the server's certificate, if it differs from HOST, as with kubectl port-forward."
    ),
    Flag(
        "server-token-file",
        PATH,
        "File with your bearer token (default: the credentials of --kubeconfig and --context).",
    ),
)


def asked_of_server(values: FlagValues) -> Explanation:
    """Return the server's explanation.

    Raises UsageError, with the server's address and what to do, if the server cannot be reached or refuses the request.
    Raises KubernetesError if the caller's credentials cannot be read.
    """
    for name in _BY_ITSELF:
        if name in values.given:
            raise UsageError(f"--{name} cannot be combined with --server, which has its own setting: remove it")
    client = server_client(values)
    try:
        return _fetch_explanation(client, values)
    except (UsageError, KubernetesError) as error:
        raise UsageError(f"{values.text('server')}: {error}") from error


def server_client(values: FlagValues) -> KubernetesClient:
    """Return a client of the server that `--server` names, with the caller's credentials.

    Raises UsageError for flags that cannot be used, and KubernetesError for credentials that cannot be read.
    """
    return KubernetesClient(direct_access(_server(values)), _DEADLINES)


def _fetch_explanation(client: KubernetesClient, values: FlagValues) -> Explanation:
    try:
        return explanation_of(client.get(PATH_ON_SERVER, _parameters(values)))
    except NoExplanationError as error:
        message = f"the server is not {PROGRAM}, because its answer is not an Explanation: check --server"
        raise UsageError(message) from error
    except UnreachableError as error:
        raise UsageError(f"{error}: {_repair(str(error))}") from error


def _repair(problem: str) -> str:
    """Return what to do if the server cannot be reached; only OpenSSL's message tells the reasons apart."""
    if "TLS: " not in problem:
        return "check --server, and whether its port is reachable"
    if "does not speak TLS" in problem:
        return "name its TLS port in --server"
    if "mismatch" in problem or "not valid for" in problem:
        return "set --server-name to a name in its certificate"
    return "set --server-ca-file to its CA"


def _server(values: FlagValues) -> DirectServer:
    kubeconfig, token_file = values.path("kubeconfig"), values.path("server-token-file")
    if token_file is None and kubeconfig is None and not values.text("context"):
        raise UsageError("--server needs your credentials: set --server-token-file or --kubeconfig")
    try:
        return DirectServer(
            url=values.text("server"),
            ca_file=values.path("server-ca-file"),
            name=values.text("server-name") or None,
            token_file=token_file,
            kubeconfig=None if kubeconfig is None else str(kubeconfig),
            context=values.text("context") or None,
        )
    except ConfigurationError as error:
        raise UsageError(f"--server: {error}") from error


def _parameters(values: FlagValues) -> dict[str, str]:
    named = ("namespace", "object", "selector", "api")
    said = {"metric": values.arguments[0], **{name: values.text(name) for name in named}}
    return {name: text for name, text in said.items() if text}
