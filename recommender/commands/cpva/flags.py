"""The flags of cluster-proportional-vertical-autoscaler, and additional flags."""

from __future__ import annotations

from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.service.flags.table import ADDRESS, INTEGER, PATH, TEXT, CommandFlags, Flag, in_group, switch
from recommender.commands.program import PROGRAM

_GROUP = "cluster-proportional-vertical-autoscaler"

CPVA = CommandFlags(
    program=f"{PROGRAM} cpva",
    summary="Sets requests and limits of a workload by the number of nodes and cores, with the command line, the "
    "configuration and the rights of cluster-proportional-vertical-autoscaler.",
    examples=(
        f"{PROGRAM} cpva --namespace kube-system --target deployment/thing --config-file /etc/config/thing",
        (
            f"{PROGRAM} cpva --namespace kube-system --target deployment/thing --dry-run "
            '--default-config "$(cat thing.json)"'
        ),
    ),
    flags=(
        *in_group(
            _GROUP,
            Flag(
                "target",
                TEXT,
                "Workload to resize, as deployment/NAME, daemonset/NAME or replicaset/NAME.",
                required=True,
            ),
            Flag("namespace", TEXT, "Namespace of the target (default: the environment variable MY_NAMESPACE)."),
            Flag("default-config", TEXT, "Sizes as JSON, by container: base, step, max, coresPerStep, nodesPerStep."),
            Flag(
                "config-file",
                PATH,
                "File with such JSON, which is followed; its containers precede those of --default-config.",
            ),
            Flag("poll-period-seconds", INTEGER, "Seconds between decisions; at least 1.", default=10),
            switch("dry-run", "Write nothing to the cluster."),
        ),
        Flag(
            "plain-bind-address",
            ADDRESS,
            "Serve /healthz, /last-poll, /metrics, /livez and /readyz there (default: nowhere).",
            group="Serving",
        ),
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
    # The original program ignores them, and manifests contain some, such as the value in `--logtostderr true`.
    passes_over_more=True,
)
