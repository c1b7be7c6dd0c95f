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
from adapter.foundation.options.worker import worker_flags
from adapter.foundation.service.flags.table import (
    ADDRESS,
    DURATION,
    HOST,
    PATH,
    PORT,
    CommandFlags,
    Flag,
    Repeat,
    in_group,
    one_of,
    switch,
)
from adapter.foundation.service.server.tls import VERSIONS
from adapter.nodes.model.loads import LoadResource

_WINDOWS: Final = "Windows and scores"
_SERVING: Final = "Serving"

PORT_OF_LOAD_WATCHER: Final = 2020

_WINDOW_FLAGS = in_group(
    _WINDOWS,
    Flag(
        "scheduling-config",
        PATH,
        "File with policies, filter, queries and hot spots (kind: SchedulingConfiguration). Changes take effect "
        "without a restart.",
    ),
    Flag("refresh-interval", DURATION, "How often the newest samples are queried from Prometheus.", default=30.0),
    Flag("state", PATH, "State file of the samples, from which a restarted process answers at once (default: none)."),
    Flag(
        "node-metrics",
        one_of(*LoadResource),
        "Resources whose windows /metrics shows for each node; --node-metrics= shows none.",
        repeat=Repeat.COMMAS,
        default=(str(LoadResource.CPU), str(LoadResource.MEMORY)),
    ),
    Flag("objects", PATH, "Read nodes and pods from the *.json and *.yaml files in this folder instead of a cluster."),
)

_SERVING_FLAGS = (
    *in_group(
        _SERVING,
        Flag("port", PORT, "Port of the API; 0 takes a free one.", default=PORT_OF_LOAD_WATCHER),
        Flag("bind-address", HOST, "Address of the API.", default="0.0.0.0"),  # noqa: S104 - load-watcher's
        Flag(
            "plain-bind-address",
            ADDRESS,
            "Plain HTTP for /metrics, /livez, /readyz and /healthz beside the API (default: none).",
        ),
        Flag(
            "tls-cert-file",
            PATH,
            "Serving certificate (default: no TLS); a renewed file takes effect without a restart.",
        ),
        Flag("tls-private-key-file", PATH, "Private key of the serving certificate."),
        Flag("tls-min-version", one_of(*VERSIONS), "Lowest TLS version.", default="VersionTLS12"),
        switch(
            "tls-optional",
            "Answer plain HTTP on the same port too, for clients that do not trust your CA, such as the descheduler; "
            "with --client-ca-file, /scheduler still needs a certificate.",
        ),
        Flag(
            "client-ca-file", PATH, "CA of client certificates: /scheduler then answers only clients that present one."
        ),
        Flag(
            "token-file",
            PATH,
            "File with a bearer token that /watcher, /nodes/unmapped, /scores, /hotspots and /api/v1/query then "
            "require; changes take effect without a restart.",
        ),
        switch(
            "open-watcher", "Answer /watcher and /watcher/HOST without the token, which Trimaran's plugins cannot send."
        ),
    ),
    *worker_flags(_SERVING),
)

NODES = CommandFlags(
    program=f"{PROGRAM} nodes",
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
