"""Metrics that pods publish about themselves: websockets of Node.js and others, HTTP servers, the JVM and Go."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adapter.foundation.exporters.known_metrics import KnownMetric, SeriesType, pod_metric


def _no_load(exporter: str, series: str, kind: SeriesType, meaning: str) -> KnownMetric:
    """Return a metric that shows the health of a pod, but does not follow its load."""
    return replace(pod_metric(exporter, series, kind, meaning), scales=False)


_COUNTER, _GAUGE = SeriesType.COUNTER, SeriesType.GAUGE

RUNTIMES: Final = (
    pod_metric("websockets", "websocket_connections", _GAUGE, "open websocket connections of a pod"),
    pod_metric("websockets", "websocket_connections_active", _GAUGE, "open websocket connections of a pod"),
    pod_metric("node", "socket_io_connected", _GAUGE, "connected sockets of socket.io"),
    pod_metric("node", "nodejs_active_handles", _GAUGE, "open sockets of Node.js", 'type="Socket"'),
    pod_metric("jvm", "tomcat_connections_current_connections", _GAUGE, "open connections of Tomcat (Micrometer)"),
    pod_metric("jvm", "tomcat_threads_busy_threads", _GAUGE, "busy threads of Tomcat (Micrometer)"),
    pod_metric("jvm", "jetty_connections_current_connections", _GAUGE, "open connections of Jetty (Micrometer)"),
    pod_metric("jvm", "executor_queued_tasks", _GAUGE, "tasks that wait for a thread (Micrometer)"),
    pod_metric("jvm", "hikaricp_connections_pending", _GAUGE, "threads that wait for a connection of the database"),
    pod_metric("jvm", "http_server_requests_seconds_count", _COUNTER, "HTTP requests (Micrometer)"),
    pod_metric("go", "grpc_server_handled_total", _COUNTER, "calls of gRPC"),
    pod_metric("http", "http_requests_total", _COUNTER, "HTTP requests"),
    pod_metric("http", "http_request_duration_seconds_count", _COUNTER, "HTTP requests"),
    _no_load("node", "nodejs_eventloop_lag_p99_seconds", _GAUGE, "delay of the event loop"),
    _no_load("jvm", "jvm_threads_live_threads", _GAUGE, "threads of the JVM (Micrometer)"),
    _no_load("jvm", "jvm_threads_current", _GAUGE, "threads of the JVM (client_java)"),
    _no_load("go", "go_goroutines", _GAUGE, "goroutines of a pod"),
)
"""The metrics, the best measure of load first: an example HPA uses the first metric that its workload has."""
