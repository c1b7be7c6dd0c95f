"""The flags of addon-resizer (`pod_nanny`) in its versions 1.8 and 2, and additional flags."""

from __future__ import annotations

from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.service.flags.table import (
    ADDRESS,
    DURATION,
    INTEGER,
    TEXT,
    CommandFlags,
    Flag,
    in_group,
    one_of,
    switch,
)
from adapter.foundation.service.server.addresses import Address
from recommender.commands.program import PROGRAM

_SIZES = "Sizes"
_WHEN = "When to resize"
_WHAT = "What to resize"
_HOW = "How to run"
_SERVING = "Serving"
_LEASE = "Leader election"

_SIZE_FLAGS = in_group(
    _SIZES,
    *(
        flag
        for resource, example in (("cpu", "300m"), ("memory", "200Mi"), ("storage", "10Gi"))
        for flag in (
            Flag(resource, TEXT, f"The base of {resource}, such as {example}."),
            Flag(f"extra-{resource}", TEXT, f"What each node, or container, adds to the base of {resource}."),
        )
    ),
    Flag(
        "config-dir",
        TEXT,
        "Folder with a file NannyConfiguration, which is followed; its values take precedence over flags.",
    ),
    Flag("nanny-config-map-name", TEXT, "ConfigMap with the same key, read at each poll; with --run-on-control-plane."),
    Flag(
        "estimator",
        one_of("linear", "exponential"),
        "Size by the number of nodes, or by the next one in a series that grows by half.",
        default="linear",
    ),
    Flag("minClusterSize", INTEGER, "First number of the exponential series; at least 2.", default=16),
    Flag(
        "scaling-mode",
        one_of("node-proportional", "container-proportional"),
        "What is counted.",
        default="node-proportional",
    ),
    switch("use-metrics", "Count by the API server's metrics instead of lists."),
)
_WHEN_FLAGS = in_group(
    _WHEN,
    Flag("threshold", INTEGER, "Percent by which sizes may differ from the desired ones (1.8).", default=0),
    Flag(
        "acceptance-offset", INTEGER, "Percent of nodes by which sizes may be too large or too small (2.x).", default=20
    ),
    Flag("recommendation-offset", INTEGER, "Percent of nodes around which new sizes are chosen (2.x).", default=10),
    Flag(
        "scale-down-delay",
        DURATION,
        "Shortest time from the start, or the last change, until sizes may go down.",
        default=0.0,
    ),
    Flag(
        "scale-up-delay",
        DURATION,
        "Shortest time from the start, or the last change, until sizes may go up.",
        default=0.0,
    ),
)
_WHAT_FLAGS = in_group(
    _WHAT,
    Flag("deployment", TEXT, "The Deployment that is resized.", required=True),
    Flag("container", TEXT, "The container that is resized.", default="pod-nanny"),
    Flag("namespace", TEXT, "Its namespace (default: the environment variable MY_POD_NAMESPACE)."),
    Flag("pod", TEXT, "Pod whose sizes count (default: MY_POD_NAME; without either, the Deployment)."),
)
_HOW_FLAGS = (
    *in_group(
        _HOW,
        Flag("poll-period", INTEGER, "Milliseconds between decisions.", default=10000),
        switch("run-on-control-plane", "Read the configuration through the API, and allow leader election."),
        switch("dry-run", "Write nothing to the cluster."),
    ),
    *in_group(
        _SERVING,
        Flag(
            "healthcheck-address",
            ADDRESS,
            "Address of /health-check, /metrics, /last-poll, /livez and /readyz; with offsets (2.x) only if given.",
            default=Address("", 8080),
        ),
        Flag("address", ADDRESS, "Another address of the same, with --expose-metrics.", default=Address("", 8945)),
        switch("expose-metrics", "Also serve --address."),
    ),
    *in_group(
        _LEASE,
        switch(
            "leader-election-enable",
            "Elect one of several processes by the Lease addon-resizer; with --run-on-control-plane.",
        ),
        Flag("leader-election-lease-duration", DURATION, "How long others wait after a renewal.", default=15.0),
        Flag(
            "leader-election-renew-deadline", DURATION, "How long the leader acts after its last renewal.", default=10.0
        ),
        Flag("leader-election-retry-period", DURATION, "Time between two attempts.", default=2.0),
    ),
)

POD_NANNY = CommandFlags(
    program=f"{PROGRAM} pod-nanny",
    summary="Sets requests and limits of one container of a Deployment by the number of nodes, with the command line, "
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
    # The original program ignores them, and manifests contain some, such as the value in `--logtostderr true`.
    passes_over_more=True,
)
