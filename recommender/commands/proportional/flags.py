"""The flags of cluster-proportional-autoscaler, and additional flags."""

from __future__ import annotations

from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.service.flags.table import (
    ADDRESS,
    DURATION,
    HOST,
    INTEGER,
    PORT,
    TEXT,
    CommandFlags,
    Flag,
    Ignored,
    Repeat,
    in_group,
    switch,
)
from adapter.foundation.service.server.addresses import Address
from recommender.commands.program import PROGRAM

_SERVING = "Serving"
_SCALING = "cluster-proportional-autoscaler"
_ONE_PROCESS = Ignored("this command is one process without requests that it could finish")
_SERVING_FLAGS = in_group(
    _SERVING,
    Flag(
        "plain-bind-address",
        ADDRESS,
        "Address of /healthz, /last-poll, /metrics, /livez and /readyz; :0 takes a free port and logs it.",
        default=Address("", 8080),
    ),
    Flag(
        "port",
        PORT,
        "Also serve the page and its API on this port; 0 takes a free one. This needs 15 MiB more.",
        default=8081,
    ),
    Flag("bind-address", HOST, "Address of the page and its API.", default="127.0.0.1"),
    Flag(
        "allowed-hosts",
        TEXT,
        "Host names under which the page is served, besides localhost and its address.",
        repeat=Repeat.COMMAS,
    ),
    Flag("shutdown-delay", DURATION, default=0.0, state=_ONE_PROCESS),
    switch("pin-cpu", state=_ONE_PROCESS),
)

PROPORTIONAL = CommandFlags(
    program=f"{PROGRAM} proportional",
    summary="Scales targets by the number of nodes and cores, with the command line, the ConfigMap and the rights of "
    "cluster-proportional-autoscaler.",
    examples=(
        f"{PROGRAM} proportional --namespace kube-system --target deployment/coredns --configmap coredns-autoscaler",
        (
            f"{PROGRAM} proportional --namespace kube-system --target deployment/coredns "
            "--configmap coredns-autoscaler --poll-period-seconds 30 -v 4"
        ),
    ),
    flags=(
        *in_group(
            _SCALING,
            Flag(
                "target",
                TEXT,
                "Targets to scale, separated by commas, as deployment/NAME, replicationcontroller/NAME or "
                "replicaset/NAME.",
                required=True,
            ),
            Flag("configmap", TEXT, "Name of the ConfigMap with the parameters.", required=True),
            Flag(
                "namespace",
                TEXT,
                "Namespace of targets and ConfigMap (default: the environment variable MY_POD_NAMESPACE).",
            ),
            Flag(
                "default-params",
                TEXT,
                'Parameters with which a missing ConfigMap is created: {"linear": {"nodesPerReplica": 16}}.',
            ),
            Flag("nodelabels", TEXT, "Label selector: other nodes do not count."),
            Flag(
                "ignore-taints",
                TEXT,
                "Keys of taints, separated by commas: nodes with one of them do not count.",
                repeat=Repeat.COMMAS,
            ),
            switch("ignore-virtual-nodes", "Leave out nodes of virtual-kubelet and of EKS Fargate."),
            Flag("poll-period-seconds", INTEGER, "Seconds between decisions; at least 1.", default=10),
            Flag(
                "max-sync-failures",
                INTEGER,
                "Exit with status 1 after this number of consecutive failed polls; 0: never.",
                default=0,
            ),
            switch(
                "leader-elect",
                "Elect one of several processes by a Lease with the ConfigMap's name; needs get, create and update on "
                "leases.",
            ),
            switch("dry-run", "Write nothing to the cluster."),
        ),
        *_SERVING_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
    # The original program ignores them, and manifests contain some, such as the value in `--logtostderr true`.
    passes_over_more=True,
)
