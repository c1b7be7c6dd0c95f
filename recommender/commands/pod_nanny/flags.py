"""The flags of addon-resizer (`pod_nanny`), of its versions 1.8 and 2, and what a user may add to them."""

from __future__ import annotations

from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.version import program_version
from adapter.foundation.service.flags.table import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    INTEGER,
    TEXT,
    CommandFlags,
    Flag,
    one_of,
)
from adapter.foundation.service.server.addresses import Address
from recommender.commands.program import PROGRAM

_SIZES = "Sizes"
_WHEN = "When to resize"
_WHAT = "What to resize"
_HOW = "How to run"
_SERVING = "Serving"
_LEASE = "Leader election"

_SIZE_FLAGS = (
    *(
        flag
        for resource, example in (("cpu", "300m"), ("memory", "200Mi"), ("storage", "10Gi"))
        for flag in (
            Flag(name=resource, kind=TEXT, help=f"The base of {resource}, such as {example}.", group=_SIZES),
            Flag(
                name=f"extra-{resource}",
                kind=TEXT,
                help=f"What each node, or container, adds to the base of {resource}.",
                group=_SIZES,
            ),
        )
    ),
    Flag(
        name="config-dir",
        kind=TEXT,
        help="Folder with a file NannyConfiguration, which is followed; its values go before flags.",
        group=_SIZES,
    ),
    Flag(
        name="nanny-config-map-name",
        kind=TEXT,
        help="ConfigMap with the same key, read at each poll; with --run-on-control-plane.",
        group=_SIZES,
    ),
    Flag(
        name="estimator",
        kind=one_of("linear", "exponential"),
        default="linear",
        help="Size by the number of nodes, or by the next one in a series that grows by half.",
        group=_SIZES,
    ),
    Flag(
        name="minClusterSize",
        kind=INTEGER,
        default=16,
        help="First number of the exponential series; at least 2.",
        group=_SIZES,
    ),
    Flag(
        name="scaling-mode",
        kind=one_of("node-proportional", "container-proportional"),
        default="node-proportional",
        help="What is counted.",
        group=_SIZES,
    ),
    Flag(
        name="use-metrics",
        kind=BOOLEAN,
        default=False,
        help="Count by the metrics of the API server instead of lists.",
        group=_SIZES,
    ),
)
_WHEN_FLAGS = (
    Flag(
        name="threshold",
        kind=INTEGER,
        default=0,
        help="Percent by which sizes may differ from what is wanted (1.8).",
        group=_WHEN,
    ),
    Flag(
        name="acceptance-offset",
        kind=INTEGER,
        default=20,
        help="Percent of nodes by which sizes may be too large or too small (2.x).",
        group=_WHEN,
    ),
    Flag(
        name="recommendation-offset",
        kind=INTEGER,
        default=10,
        help="Percent of nodes around which new sizes are chosen (2.x).",
        group=_WHEN,
    ),
    Flag(
        name="scale-down-delay",
        kind=DURATION,
        default=0.0,
        help="Least time after the start or the last change before sizes fall.",
        group=_WHEN,
    ),
    Flag(
        name="scale-up-delay",
        kind=DURATION,
        default=0.0,
        help="Least time after the start or the last change before sizes grow.",
        group=_WHEN,
    ),
)
_WHAT_FLAGS = (
    Flag(name="deployment", kind=TEXT, required=True, help="The Deployment that is resized.", group=_WHAT),
    Flag(name="container", kind=TEXT, default="pod-nanny", help="The container that is resized.", group=_WHAT),
    Flag(
        name="namespace",
        kind=TEXT,
        help="Its namespace (default: the environment variable MY_POD_NAMESPACE).",
        group=_WHAT,
    ),
    Flag(
        name="pod",
        kind=TEXT,
        help="Pod whose sizes count (default: MY_POD_NAME; without either, the Deployment).",
        group=_WHAT,
    ),
)
_HOW_FLAGS = (
    Flag(name="poll-period", kind=INTEGER, default=10000, help="Milliseconds between decisions.", group=_HOW),
    Flag(
        name="run-on-control-plane",
        kind=BOOLEAN,
        default=False,
        help="Read the configuration by the API, and allow for leader election.",
        group=_HOW,
    ),
    Flag(name="dry-run", kind=BOOLEAN, default=False, help="Write nothing to the cluster.", group=_HOW),
    Flag(
        name="healthcheck-address",
        kind=ADDRESS,
        default=Address("", 8080),
        help="Address of /health-check, /metrics, /last-poll, /livez and /readyz.",
        group=_SERVING,
    ),
    Flag(
        name="address",
        kind=ADDRESS,
        default=Address("", 8945),
        help="Another address of the same, with --expose-metrics.",
        group=_SERVING,
    ),
    Flag(name="expose-metrics", kind=BOOLEAN, default=False, help="Also serve --address.", group=_SERVING),
    Flag(
        name="leader-election-enable",
        kind=BOOLEAN,
        default=False,
        help="Elect one of several processes by the Lease addon-resizer; with --run-on-control-plane.",
        group=_LEASE,
    ),
    Flag(
        name="leader-election-lease-duration",
        kind=DURATION,
        default=15.0,
        help="How long others wait after a renewal.",
        group=_LEASE,
    ),
    Flag(
        name="leader-election-renew-deadline",
        kind=DURATION,
        default=10.0,
        help="How long the leader acts after its last renewal.",
        group=_LEASE,
    ),
    Flag(
        name="leader-election-retry-period",
        kind=DURATION,
        default=2.0,
        help="Time between two attempts.",
        group=_LEASE,
    ),
)

POD_NANNY = CommandFlags(
    program=f"{PROGRAM} pod-nanny",
    version=program_version(),
    summary="Sets requests and limits of one container of a Deployment by the number of nodes, by the command line, "
    "the configuration and the rights of addon-resizer (pod_nanny).",
    examples=(
        (
            f"{PROGRAM} pod-nanny --deployment metrics-server --container metrics-server "
            "--namespace kube-system --cpu 40m --extra-cpu 0.5m --memory 40Mi --extra-memory 4Mi --threshold 5"
        ),
        (
            f"{PROGRAM} pod-nanny --deployment nanny-v1 --config-dir /etc/config --estimator exponential "
            "--minClusterSize 5 --scale-down-delay 24h"
        ),
    ),
    flags=(*_SIZE_FLAGS, *_WHEN_FLAGS, *_WHAT_FLAGS, *_HOW_FLAGS, *CLUSTER_FLAGS, *LOG_FLAGS),
    # The peer ignores them, and manifests have some, such as the value in `--logtostderr true`.
    passes_over_more=True,
)
