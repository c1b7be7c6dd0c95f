"""The flags of `tidewatch-recommender run`."""

from __future__ import annotations

from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.worker import DELAY
from adapter.foundation.service.flags.table import (
    ADDRESS,
    HOST,
    PATH,
    PORT,
    TEXT,
    CommandFlags,
    Flag,
    Repeat,
    in_group,
    switch,
)
from adapter.foundation.service.server.addresses import Address
from recommender.commands.program import PROGRAM

_SERVING = "Serving"
_RECOMMENDATIONS = "Recommendations"

PAGE_ADDRESS = Address("127.0.0.1", 8081)
METRICS_ADDRESS = Address("", 8080)

SERVING_FLAGS: tuple[Flag, ...] = in_group(
    _SERVING,
    Flag(
        "bind-address",
        HOST,
        "Address of the page and its API. They show the names of all targets, so they are local by default.",
        default=PAGE_ADDRESS.host,
    ),
    Flag("port", PORT, "Port of the page and its API; 0 takes a free one.", default=PAGE_ADDRESS.port),
    Flag(
        "allowed-hosts",
        TEXT,
        "Host names under which the page is served, besides localhost and its address; requests for other names, "
        "as those of DNS rebinding, are answered with 421.",
        repeat=Repeat.COMMAS,
    ),
    Flag(
        "plain-bind-address",
        ADDRESS,
        "Address of /metrics, /livez, /readyz and /healthz; :0 takes a free port and logs it.",
        default=METRICS_ADDRESS,
    ),
    Flag(
        "shutdown-delay",
        DELAY,
        "How long to keep serving after SIGTERM. The Lease is released at once.",
        default=0.0,
    ),
    switch("pin-cpu", "Pin the worker to one core."),
)

RUN = CommandFlags(
    program=f"{PROGRAM} run",
    summary="Decides repeatedly, publishes its recommendations, and scales targets that have the output scale.",
    examples=(
        f"{PROGRAM} run --config recommender.yaml --kubeconfig ~/.kube/config",
        f"{PROGRAM} run --config recommender.yaml --dry-run --log-level debug",
    ),
    flags=(
        *in_group(
            _RECOMMENDATIONS,
            Flag("config", PATH, "The configuration file.", required=True),
            Flag(
                "objects", PATH, "Folder with the objects' *.json and *.yaml, in place of a cluster. Nothing is scaled."
            ),
            switch("dry-run", "Write nothing to the cluster: no scale call, event, ConfigMap or Lease."),
            switch("validate", "Check the configuration and end: status 1 if an entry is refused, 2 if the file is."),
        ),
        *SERVING_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)
