"""`doctor` checks whether `tidewatch-adapter nodes` answers, and whether schedulers can use its answers."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from adapter.foundation.reports.counts import agreeing, count_of
from adapter.foundation.reports.lines import Line, error, ok, unknown, warning
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import PATH, TEXT, Flag, FlagValues
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.transport.requests import ApiRequest
from adapter.foundation.sources.prometheus.transport.server import Server
from adapter.nodes.exporters.claims import source_of, source_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from adapter.foundation.sources.prometheus.transport.http_answers import HttpAnswer

_SECONDS: Final = 5.0
_SHOWN_JOBS: Final = 3
_MOST_BYTES: Final = 64 << 20
_OLD_SECONDS: Final = 120.0
_DEFAULT_WINDOW_SECONDS: Final = 900.0
_VERDICT: Final = re.compile(r'^tidewatch_node_verdicts\{resource="([a-z]+)",verdict="([a-z_]+)"\} (\d+)', re.MULTILINE)
_GOOD: Final = frozenset({"fresh", "counter_reset", "jumped", "gap"})
_SCORED: Final = b'{"Pod":{"metadata":{"name":"doctor","namespace":"default"},"spec":{"containers":[]}},"NodeNames":[]}'

_ASKED: Final = {
    "/readyz": None,
    "/watcher": None,
    "/nodes/unmapped": None,
    "/metrics": None,
    "/scheduler/prioritize": _SCORED,
}
"""The paths, with the body that is sent to them."""
NODES_FLAGS: tuple[Flag, ...] = (
    Flag("nodes-url", TEXT, "URL of `tidewatch-adapter nodes`, to check it as well."),
    Flag("nodes-token-file", PATH, "File with the bearer token for it, if it requires one."),
    Flag("nodes-ca-file", PATH, "CA to verify it with (default: those of the system)."),
)


def nodes_server(values: FlagValues) -> PrometheusSettings | None:
    """Return how to reach the server; None if no flag names it. Raises UsageError."""
    if not values.text("nodes-url"):
        return None
    try:
        return PrometheusSettings(
            url=values.text("nodes-url"),
            ca_file=values.path("nodes-ca-file"),
            token_file=values.path("nodes-token-file"),
        )
    except SettingsError as problem:
        raise UsageError(f"--nodes-url: {str(problem).removeprefix('Prometheus ')}") from problem


def look_at_nodes(client: ObjectClient, settings: PrometheusSettings) -> tuple[Line, ...]:
    """Query the server as its clients do."""
    shown = settings.endpoint.shown
    try:
        ready, watcher, unmapped, metrics, scored = _fetch_answers(settings)
    except (PrometheusError, SettingsError) as problem:
        cause = problem.cause if isinstance(problem, PrometheusError) else str(problem)
        fix = "check --nodes-url and --nodes-ca-file, and whether a NetworkPolicy keeps this pod from it"
        return (error("nodes", f"{shown} does not answer: {cause}", fix),)
    return (
        _judge_ready(shown, ready),
        judge_watcher(watcher.status, watcher.body, _names(client), time.time()),
        *judge_verdicts(metrics.body.decode(errors="replace")),
        *judge_unmapped(unmapped.status, unmapped.body),
        judge_extender(scored.status),
    )


def judge_watcher(status: int, body: bytes | bytearray, names: Collection[str] | None, now: float) -> Line:
    """Return the line about `/watcher`, decoded as by Trimaran's client. `names` are the names of the Node objects."""
    name = "nodes/watcher"
    if status == 401:
        return unknown(name, "/watcher requires a token", "set --nodes-token-file; Trimaran's client sends none")
    if status != 200:
        fix = "see its log and `tidewatch_node_verdicts`: Trimaran keeps its last document, or scores every node 0"
        return error(name, f"/watcher answers {status}: {_message(body)}", fix)
    try:
        document = msgspec.json.decode(body)
        found: Mapping[str, Any] = document["data"]["NodeMetricsMap"]
        age = now - float(document["window"]["end"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return error(
            name,
            "Trimaran would find no node in the answer of /watcher, and score every node 0",
            "check whether --nodes-url is tidewatch-adapter nodes, without a path",
        )
    return _judge_nodes(name, set(found), None if names is None else set(names), age)


def _judge_nodes(name: str, found: set[str], names: set[str] | None, age: float) -> Line:
    known = len(found if names is None else found & names)
    if names and not known:
        fix = "see /nodes/unmapped for the repair, and let tidewatch-adapter nodes list Node objects"
        message = f"it names no node of this cluster (nodes named: {len(found)}): Trimaran would score every node 0"
        return error(name, message, fix)
    if age > _DEFAULT_WINDOW_SECONDS:
        return error(name, f"the windows ended {age:.0f} s ago", "check whether Prometheus answers")
    missing = 0 if names is None else len(names) - known
    if age > _OLD_SECONDS or missing:
        fix = "see /nodes/unmapped and the lines about resources"
        return warning(name, f"nodes served: {known}, not served: {missing}; the windows ended {age:.0f} s ago", fix)
    return ok(name, f"nodes served: {known}, not served: 0; the windows ended {age:.0f} s ago")


def judge_verdicts(metrics: str) -> Iterator[Line]:
    """Yield a line for each resource, with the number of nodes for each verdict."""
    resources: dict[str, Counter[str]] = {}
    for resource, verdict, number in _VERDICT.findall(metrics):
        resources.setdefault(resource, Counter())[verdict] += int(number)
    for resource, verdicts in resources.items():
        good = sum(number for verdict, number in verdicts.items() if verdict in _GOOD)
        counts = ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in verdicts.items() if number)
        name = f"nodes/{resource}"
        if good == sum(verdicts.values()) or (not good and resource not in {"cpu", "memory"}):
            yield ok(name, counts or "no node has series")
        elif good:
            yield warning(name, counts, "docs/node-windows.md says what each verdict means")
        else:
            fix = "check whether node_exporter is scraped, and the `matchers` and `queries` of the configuration"
            yield error(name, counts or "no node has series", fix)


def judge_unmapped(status: int, body: bytes | bytearray) -> Iterator[Line]:
    """Yield the lines about series of unknown nodes, refused series, and the jobs whose series are used."""
    name = "nodes/unmapped"
    if status != 200:
        yield unknown(name, f"/nodes/unmapped answers {status}: {_message(body)}", "see the other lines about nodes")
        return
    try:
        document = msgspec.json.decode(body)
        refused = [item for item in document["items"] if item.get("refused")]
        yield _judge_items(name, [item for item in document["items"] if not item.get("refused")])
        if document.get("jobs"):
            yield _judge_jobs(document["jobs"], refused)
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        yield unknown(name, "the answer cannot be read", "check whether --nodes-url is tidewatch-adapter nodes")


def _judge_items(name: str, items: Sequence[Mapping[str, Any]]) -> Line:
    if not items:
        return ok(name, "every series belongs to a node")
    message = f"series without a node: {len(items)}; the first is of {items[0]['instance']!r}"
    return warning(name, message, str(items[0]["fix"]))


def _judge_jobs(jobs: Sequence[Mapping[str, Any]], refused: Sequence[Mapping[str, Any]]) -> Line:
    """Return the line about the jobs that supply the loads, and about jobs that report the same nodes."""
    shown = "; ".join(
        f"{source_text(source_of(job['labels']))} for {count_of(max(job['nodes'].values()), 'node')}"
        for job in jobs[:_SHOWN_JOBS]
    )
    message = f"the load is taken from {shown}" + (" and others" if len(jobs) > _SHOWN_JOBS else "")
    if not refused:
        return ok("nodes/jobs", message)
    # A job that is refused as a whole has no instance.
    which = f", such as {refused[0]['instance']!r}" if refused[0]["instance"] else ""
    others = agreeing(len(refused), "other series or job is", "other series or jobs are")
    message += f"; {len(refused)} {others} refused{which}: {refused[0]['refused']}"
    return warning("nodes/jobs", message, str(refused[0]["fix"]))


def judge_extender(status: int) -> Line:
    """Return the line about `/scheduler/prioritize`."""
    name = "nodes/extender"
    if status == 200:
        return ok(name, "/scheduler/prioritize answers")
    if status == 401:
        fix = "give it to kube-scheduler in `extenders[].tlsConfig`"
        return ok(name, f"/scheduler/prioritize requires a client certificate: {fix}")
    fix = "kube-scheduler accepts only status 200: see the log of tidewatch-adapter nodes"
    return error(name, f"/scheduler/prioritize answers {status}", fix)


def _judge_ready(shown: str, answer: HttpAnswer) -> Line:
    if answer.status == 200:
        return ok("nodes", f"{shown} is ready")
    return warning(
        "nodes", f"{shown} is not ready: {answer.body.decode(errors='replace')[:200]}", "wait, or see its log"
    )


def _fetch_answers(settings: PrometheusSettings) -> list[HttpAnswer]:
    """Return the answer to each of `_ASKED`. Raises PrometheusError and SettingsError."""
    server = Server(settings)
    try:
        return [
            server.exchange(
                path,
                ApiRequest(path, verb="GET" if body is None else "POST", body=body, max_bytes=_MOST_BYTES),
                Deadline(_SECONDS),
            )
            for path, body in _ASKED.items()
        ]
    finally:
        server.close()


def _names(client: ObjectClient) -> Collection[str] | None:
    """Return the names of Node objects; None if they cannot be listed."""
    try:
        items = client.get("/api/v1/nodes").document.get("items", [])
        return [item["metadata"]["name"] for item in items]
    except (KubernetesError, KeyError, TypeError):
        return None


def _message(body: bytes | bytearray) -> str:
    try:
        found = msgspec.json.decode(body)
        return str(found["message"])[:300]
    except (msgspec.DecodeError, KeyError, TypeError):
        return body.decode(errors="replace")[:200]
