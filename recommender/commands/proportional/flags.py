"""The flags of cluster-proportional-autoscaler, and what a user may add to them."""

from __future__ import annotations

from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.version import program_version
from adapter.foundation.service.flags.table import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    INTEGER,
    PORT,
    TEXT,
    CommandFlags,
    Flag,
    Ignored,
    Repeat,
)
from adapter.foundation.service.server.addresses import Address
from recommender.commands.program import PROGRAM

_SERVING = "Serving"
_SCALING = "cluster-proportional-autoscaler"
_FEWER_LEASES = (
    "Elect one of several processes by a Lease with the ConfigMap's name; needs get, create and update on leases."
)

_ONE_PROCESS = Ignored("this command is one process without requests that it could finish")
_SERVING_FLAGS = (
    Flag(
        name="plain-bind-address",
        kind=ADDRESS,
        default=Address("", 8080),
        help="Address of /healthz, /last-poll, /metrics, /livez and /readyz; :0 takes a free port and logs it.",
        group=_SERVING,
    ),
    Flag(
        name="port",
        kind=PORT,
        default=8081,
        help="Also serve the page and its API on this port; 0 takes a free one. This needs 15 MiB more.",
        group=_SERVING,
    ),
    Flag(
        name="bind-address",
        kind=TEXT,
        default="127.0.0.1",
        help="Address of the page and its API.",
        group=_SERVING,
    ),
    Flag(
        name="allowed-hosts",
        kind=TEXT,
        repeat=Repeat.COMMAS,
        help="Host names under which the page is served, besides localhost and its address.",
        group=_SERVING,
    ),
    Flag(name="shutdown-delay", kind=DURATION, default=0.0, group=_SERVING, state=_ONE_PROCESS),
    Flag(name="pin-cpu", kind=BOOLEAN, default=False, group=_SERVING, state=_ONE_PROCESS),
)

PROPORTIONAL = CommandFlags(
    program=f"{PROGRAM} proportional",
    version=program_version(),
    summary="Scales targets with the number of nodes and cores, by the command line, the ConfigMap and the rights of "
    "cluster-proportional-autoscaler.",
    examples=(
        f"{PROGRAM} proportional --namespace kube-system --target deployment/coredns --configmap coredns-autoscaler",
        (
            f"{PROGRAM} proportional --namespace kube-system --target deployment/coredns "
            "--configmap coredns-autoscaler --poll-period-seconds 30 -v 4"
        ),
    ),
    flags=(
        Flag(
            name="target",
            kind=TEXT,
            required=True,
            help="What to scale: deployment/NAME, replicationcontroller/NAME or replicaset/NAME, separated by commas.",
            group=_SCALING,
        ),
        Flag(
            name="configmap",
            kind=TEXT,
            required=True,
            help="Name of the ConfigMap with the parameters.",
            group=_SCALING,
        ),
        Flag(
            name="namespace",
            kind=TEXT,
            help="Namespace of targets and ConfigMap (default: the environment variable MY_POD_NAMESPACE).",
            group=_SCALING,
        ),
        Flag(
            name="default-params",
            kind=TEXT,
            help='Parameters with which a missing ConfigMap is created: {"linear": {"nodesPerReplica": 16}}.',
            group=_SCALING,
        ),
        Flag(name="nodelabels", kind=TEXT, help="Label selector: other nodes do not count.", group=_SCALING),
        Flag(
            name="ignore-taints",
            kind=TEXT,
            repeat=Repeat.COMMAS,
            help="Keys of taints, separated by commas: nodes with one of them do not count.",
            group=_SCALING,
        ),
        Flag(
            name="ignore-virtual-nodes",
            kind=BOOLEAN,
            default=False,
            help="Leave out nodes of virtual-kubelet and of EKS Fargate.",
            group=_SCALING,
        ),
        Flag(
            name="poll-period-seconds",
            kind=INTEGER,
            default=10,
            help="Seconds between decisions; at least 1.",
            group=_SCALING,
        ),
        Flag(
            name="max-sync-failures",
            kind=INTEGER,
            default=0,
            help="Exit with status 1 after this number of consecutive failed polls; 0: never.",
            group=_SCALING,
        ),
        Flag(name="leader-elect", kind=BOOLEAN, default=False, help=_FEWER_LEASES, group=_SCALING),
        Flag(name="dry-run", kind=BOOLEAN, default=False, help="Write nothing to the cluster.", group=_SCALING),
        *_SERVING_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
    # The peer ignores them, and manifests have some, such as the value in `--logtostderr true`.
    passes_over_more=True,
)
