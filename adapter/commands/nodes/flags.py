"""The flags of `tidewatch-adapter nodes`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adapter.commands.nodes.load_watcher import DEFAULT_ADDRESS
from adapter.commands.program import PROGRAM
from adapter.foundation.options.asking_limit import client_limit_flags
from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.prometheus import PROMETHEUS_FLAGS
from adapter.foundation.options.version import program_version
from adapter.foundation.options.worker import worker_flags
from adapter.foundation.service.flags.table import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    PATH,
    PORT,
    TEXT,
    CommandFlags,
    Flag,
    Repeat,
    one_of,
)
from adapter.foundation.service.server.tls import VERSIONS
from adapter.nodes.model.loads import LoadResource

_WINDOWS: Final = "Windows and scores"
_SERVING: Final = "Serving"

PORT_OF_LOAD_WATCHER: Final = 2020

_WINDOW_FLAGS = (
    Flag(
        name="scheduling-config",
        kind=PATH,
        help=(
            "File with policies, filter, queries and hot spots (kind: SchedulingConfiguration). Changes take effect "
            "without a restart."
        ),
        group=_WINDOWS,
    ),
    Flag(
        name="refresh-interval",
        kind=DURATION,
        default=30.0,
        help="How often the newest samples are queried from Prometheus.",
        group=_WINDOWS,
    ),
    Flag(
        name="state",
        kind=PATH,
        help="Local file of the samples, from which a restarted process answers at once (default: none).",
        group=_WINDOWS,
    ),
    Flag(
        name="node-metrics",
        kind=one_of(*LoadResource),
        repeat=Repeat.COMMAS,
        default=(str(LoadResource.CPU), str(LoadResource.MEMORY)),
        help="Resources whose windows /metrics shows for each node; --node-metrics= shows none.",
        group=_WINDOWS,
    ),
    Flag(
        name="objects",
        kind=PATH,
        help="Read nodes and pods from the *.json and *.yaml files in this folder instead of a cluster.",
        group=_WINDOWS,
    ),
)

_SERVING_FLAGS = (
    Flag(
        name="port",
        kind=PORT,
        default=PORT_OF_LOAD_WATCHER,
        help="Port of the API; 0 takes a free one.",
        group=_SERVING,
    ),
    Flag(name="bind-address", kind=TEXT, default="0.0.0.0", help="Address of the API.", group=_SERVING),  # noqa: S104 - load-watcher's
    Flag(
        name="plain-bind-address",
        kind=ADDRESS,
        help="Plain HTTP for /metrics, /livez, /readyz and /healthz beside the API (default: none).",
        group=_SERVING,
    ),
    Flag(
        name="tls-cert-file",
        kind=PATH,
        help="Serving certificate (default: no TLS); a renewed file takes effect without a restart.",
        group=_SERVING,
    ),
    Flag(name="tls-private-key-file", kind=PATH, help="Private key of the serving certificate.", group=_SERVING),
    Flag(
        name="tls-min-version",
        kind=one_of(*VERSIONS),
        default="VersionTLS12",
        help="Lowest TLS version.",
        group=_SERVING,
    ),
    Flag(
        name="tls-optional",
        kind=BOOLEAN,
        default=False,
        help=(
            "Answer plain HTTP on the same port too, for clients that do not trust your CA, such as the descheduler; "
            "with --client-ca-file, /scheduler still needs a certificate."
        ),
        group=_SERVING,
    ),
    Flag(
        name="client-ca-file",
        kind=PATH,
        help="CA of client certificates: /scheduler then answers only clients that present one.",
        group=_SERVING,
    ),
    Flag(
        name="token-file",
        kind=PATH,
        help=(
            "File with a bearer token that /watcher, /nodes/unmapped, /scores, /hotspots and /api/v1/query then "
            "require; changes take effect without a restart."
        ),
        group=_SERVING,
    ),
    Flag(
        name="open-watcher",
        kind=BOOLEAN,
        default=False,
        help="Answer /watcher and /watcher/HOST without the token, which Trimaran's plugins cannot send.",
        group=_SERVING,
    ),
    *worker_flags(_SERVING),
)

NODES = CommandFlags(
    program=f"{PROGRAM} nodes",
    version=program_version(),
    summary=(
        "Serves the utilisation of nodes over 15, 10 and 5 minutes to Trimaran's plugins, scores and a filter to "
        "kube-scheduler, and hot nodes to the descheduler. Where no flag is given, the environment variables of "
        "load-watcher are read."
    ),
    examples=(
        f"{PROGRAM} nodes --prometheus-url http://prometheus:9090",
        f"{PROGRAM} nodes --objects cluster --prometheus-url http://prometheus:9090 --port 2020",
    ),
    flags=(
        *_WINDOW_FLAGS,
        *(
            replace(flag, default=DEFAULT_ADDRESS) if flag.name == "prometheus-url" else flag
            for flag in PROMETHEUS_FLAGS
        ),
        *CLUSTER_FLAGS,
        *client_limit_flags("Cluster"),
        *_SERVING_FLAGS,
        *LOG_FLAGS,
    ),
)
