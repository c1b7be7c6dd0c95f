"""The flags of `tidewatch-recommender run`."""

from __future__ import annotations

from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.version import program_version
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
)
from adapter.foundation.service.server.addresses import Address
from recommender.commands.program import PROGRAM

_SERVING = "Serving"
_RECOMMENDATIONS = "Recommendations"

PAGE_ADDRESS = Address("127.0.0.1", 8081)
METRICS_ADDRESS = Address("", 8080)

SERVING_FLAGS: tuple[Flag, ...] = (
    Flag(
        name="bind-address",
        kind=TEXT,
        default=PAGE_ADDRESS.host,
        help="Address of the page and its API. They show the names of all targets, so they are local by default.",
        group=_SERVING,
    ),
    Flag(
        name="port",
        kind=PORT,
        default=PAGE_ADDRESS.port,
        help="Port of the page and its API; 0 takes a free one.",
        group=_SERVING,
    ),
    Flag(
        name="allowed-hosts",
        kind=TEXT,
        repeat=Repeat.COMMAS,
        help=(
            "Host names under which the page is served, besides localhost and its address; requests for other "
            "names, as "
            "those of DNS rebinding, are answered with 421."
        ),
        group=_SERVING,
    ),
    Flag(
        name="plain-bind-address",
        kind=ADDRESS,
        default=METRICS_ADDRESS,
        help="Address of /metrics, /livez, /readyz and /healthz; :0 takes a free port and logs it.",
        group=_SERVING,
    ),
    Flag(
        name="shutdown-delay",
        kind=DURATION,
        default=0.0,
        help="How long to keep serving after SIGTERM. The Lease is released at once.",
        group=_SERVING,
    ),
    Flag(name="pin-cpu", kind=BOOLEAN, default=False, help="Pin the worker to one core.", group=_SERVING),
)

RUN = CommandFlags(
    program=f"{PROGRAM} run",
    version=program_version(),
    summary="Decides repeatedly, publishes its recommendations, and scales targets that have the output scale.",
    examples=(
        f"{PROGRAM} run --config recommender.yaml --kubeconfig ~/.kube/config",
        f"{PROGRAM} run --config recommender.yaml --dry-run --log-level debug",
    ),
    flags=(
        Flag(name="config", kind=PATH, required=True, help="The configuration file.", group=_RECOMMENDATIONS),
        Flag(
            name="objects",
            kind=PATH,
            help="Folder with the objects' *.json and *.yaml, in place of a cluster. Nothing is scaled.",
            group=_RECOMMENDATIONS,
        ),
        Flag(
            name="dry-run",
            kind=BOOLEAN,
            default=False,
            help="Write nothing to the cluster: no scale call, event, ConfigMap or Lease.",
            group=_RECOMMENDATIONS,
        ),
        Flag(
            name="validate",
            kind=BOOLEAN,
            default=False,
            help="Check the configuration and end: status 1 if an entry is refused, 2 if the file is.",
            group=_RECOMMENDATIONS,
        ),
        *SERVING_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)
