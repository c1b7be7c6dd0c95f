"""The flags of cluster-proportional-autoscaler, and what a user may add to them."""

from __future__ import annotations

from dataclasses import replace

from adapter.options.cluster import CLUSTER_FLAGS
from adapter.options.logs import LOG_FLAGS
from adapter.options.version import program_version
from adapter.service.flags.table import BOOLEAN, INTEGER, TEXT, CommandFlags, Flag
from recommender.commands.program import PROGRAM
from recommender.commands.run.flags import SERVING_FLAGS

_SCALING = "cluster-proportional-autoscaler"
_FEWER_LEASES = (
    "Let one of several processes act, by a Lease with the ConfigMap's name; needs get, create and update on leases."
)

PROPORTIONAL = CommandFlags(
    program=f"{PROGRAM} proportional",
    version=program_version(),
    summary="Scales targets with the number of nodes and cores, by the command line, the ConfigMap and the rights of "
    "cluster-proportional-autoscaler.",
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
        Flag(name="dry-run", kind=BOOLEAN, default=False, help="Send no write of any kind.", group=_SCALING),
        *(replace(flag, group="Serving") for flag in SERVING_FLAGS),
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)
