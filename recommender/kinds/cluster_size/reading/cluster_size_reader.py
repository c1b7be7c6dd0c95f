"""The shape of `clusterSize:` of a recommendation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import (
    BOOLEAN,
    LABEL_KEY,
    NAMESPACE,
    QUANTITY,
    TEXT,
    Bounds,
    duration,
    percentage,
    text,
    validated_text,
    whole,
)
from adapter.foundation.documents.sections import Key, Section, mapping_of
from adapter.foundation.documents.shapes import ListOf, OneOf, WrongValueError
from adapter.foundation.documents.tree import MappingNode, ScalarNode
from adapter.foundation.objects.integers import INT32_MAX, INT64_MAX
from adapter.foundation.objects.names import label_key_problem
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.size_settings import (
    CORES,
    MEMORY,
    SYSTEM_NAMESPACE,
    ClusterSizeSettings,
    HeadroomSchedule,
    NodeGroupSources,
    SizeLimits,
    TrustedDaemonSets,
    Unready,
    WorkloadForecast,
)
from recommender.kinds.cluster_size.model.taints import PassingTaints
from recommender.kinds.cluster_size.reading.expanders import (
    EXPANDER,
    PEERS_PRIORITIES,
    PRIORITIES,
    PRIORITY,
    PrioritySource,
)
from recommender.kinds.cluster_size.reading.node_groups import NODE_GROUPS
from recommender.kinds.cluster_size.reading.options import LONGEST_SECONDS, SCALE_DOWN, TIME
from recommender.schedules.values import CRON, TIMEZONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.objects.quantities import Quantity

_LARGEST_NODES: Final = 10_000_000
_NANO: Final = 10**9
_COUNT: Final = whole(0, _LARGEST_NODES)


def _total(unit: str, amount: Quantity) -> int:
    if amount.nanos % _NANO:
        raise WrongValueError(f"{amount} is not a whole number of {unit}", f"write whole {unit}")
    return amount.nanos // _NANO


def _range(key: str, least: int = 0, most: int | None = None) -> tuple[int, int | None]:
    if most is not None and most < least:
        raise WrongValueError(f"`limits.{key}` has a `max` that is less than its `min`", "raise it")
    return least, most


def _limits(
    cores: tuple[int, int | None] = (0, None),
    memory: tuple[int, int | None] = (0, None),
    max_nodes: int | None = None,
    gpus: Mapping[str, int] | None = None,
) -> SizeLimits:
    return SizeLimits(max_nodes, *cores, *memory, gpus or {})


def _total_field(key: str, unit: str) -> Key:
    """Return the key of a total: `cores: 320` is the largest total."""
    total = QUANTITY.then(partial(_total, unit))
    limits = Section(
        f"limits.{key}",
        partial(_range, key),
        (Key("min", total, f"Minimum {unit}.", into="least"), Key("max", total, f"Maximum {unit}.", into="most")),
    )
    either = OneOf({ScalarNode: total.then(lambda most: (0, most)), MappingNode: limits})
    return Key(key, either, f"Maximum {unit} of all nodes, or `min` and `max`.")


_EXTENDED: Final = validated_text(
    "an extended resource",
    lambda name: "/" not in name or name in {CORES, MEMORY},
    "write the name of an extended resource, such as nvidia.com/gpu: 16",
)
_LIMITS: Final = Section(
    "limits",
    _limits,
    (
        Key("nodes", whole(1, _LARGEST_NODES), "Maximum number of nodes.", into="max_nodes"),
        _total_field("cores", "cores"),
        _total_field("memory", "bytes"),
        Key("gpus", mapping_of("limits.gpus", _EXTENDED, _COUNT), "Maximum of an extended resource, by its name."),
    ),
)
_UNREADY: Final = Section(
    "maxUnready",
    Unready,
    (
        Key("ratio", percentage(Bounds(0, 100)), "Share of nodes that may be not ready."),
        Key("count", _COUNT, "Nodes that may be not ready however few there are."),
    ),
)
"""The cluster counts as unhealthy when the unready nodes exceed both limits."""


_HEADROOM: Final = percentage(Bounds(0, 1000))
_PREFIX: Final = validated_text(
    "the beginning of a taint key",
    # A prefix may end where a key may not, such as after the slash before the name.
    lambda prefix: label_key_problem(f"{prefix}x" if prefix else prefix),
    "write the key, or its beginning, without value and effect",
)


def _with_the_system(namespaces: list[str]) -> tuple[str, ...]:
    """Return the namespaces and that of the system's own components."""
    return tuple(dict.fromkeys((SYSTEM_NAMESPACE, *namespaces)))


def _check(given: Given) -> Iterator[DocumentProblem]:
    # A chain that cannot be read may contain it.
    chain = given.get("expander") or ((PRIORITY,) if given.has("expander") else ())
    if given.has("priorities") and PRIORITY not in chain:
        message = "`priorities` has no effect without the expander priority"
        yield given.problem("priorities", message, "add priority to `expander`, or remove it")


def _settings(
    node_groups: NodeGroupSources,
    priorities: PrioritySource | None = None,
    startup_taints: tuple[str, ...] = (),
    status_taints: tuple[str, ...] = (),
    **others: Any,  # noqa: ANN401 - those of ClusterSizeSettings and of NodeGroupSources
) -> ClusterSizeSettings:
    trusted = {key: others.pop(key) for key in ("daemon_sets", "autoscaler_namespaces") if key in others}
    settings = ClusterSizeSettings(
        replace(node_groups, **trusted), passing_taints=PassingTaints(startup_taints, status_taints), **others
    )
    settings = replace(settings, node_groups=_with_defaults(settings))
    if priorities is None:
        priorities = PEERS_PRIORITIES if PRIORITY in settings.expanders else PrioritySource()
    return replace(settings, priorities=priorities.by_number, priorities_config_map=priorities.config_map)


def _with_defaults(settings: ClusterSizeSettings) -> NodeGroupSources:
    """Return the sources; the options of all groups are sent to the provider behind gRPC."""
    external, scale_down = settings.node_groups.external_grpc, settings.scale_down
    if external is None:
        return settings.node_groups
    defaults = GroupOptions(
        utilization_threshold_ratio=scale_down.utilization_threshold_ratio,
        gpu_utilization_threshold_ratio=scale_down.gpu_utilization_threshold_ratio,
        unneeded_seconds=scale_down.unneeded_seconds,
        unready_seconds=scale_down.unready_seconds,
        max_node_provision_seconds=settings.max_node_provision_seconds,
        ignore_daemon_sets_utilization=scale_down.ignore_daemon_sets_utilization,
    )
    return replace(settings.node_groups, external_grpc=replace(external, defaults=defaults))


_SCHEDULES: Final = ListOf(
    Section(
        "schedules",
        HeadroomSchedule,
        (
            Key("cron", CRON, "When it begins, as in crontab(5).", "0 8 * * mon-fri"),
            Key("timezone", TIMEZONE, "IANA name of the time zone of `cron`.", "Europe/Berlin"),
            Key("duration", duration(60, LONGEST_SECONDS), "How long it lasts.", "2h", into="duration_seconds"),
            Key("headroom", _HEADROOM, "Reserve during that time.", "20%", into="headroom_ratio"),
        ),
    )
)
_DAEMON_SETS: Final = Section(
    "daemonSets",
    TrustedDaemonSets,
    (
        Key(
            "namespaces",
            ListOf(NAMESPACE, lambda names: frozenset(_with_the_system(names))),
            "Namespaces whose DaemonSets always count on new nodes, beside kube-system.",
        ),
        Key(
            "share",
            percentage(Bounds(0, 100)),
            "Share of a new node for those of any other namespace.",
            into="share_ratio",
        ),
    ),
)
CLUSTER_SIZE: Final = Section(
    "clusterSize",
    _settings,
    (
        Key("nodeGroups", NODE_GROUPS, "Groups that are sized.", "{clusterAPI: {namespaces: [capi-system]}}"),
        Key("expander", EXPANDER, "How one of several groups is chosen: a name or a chain.", into="expanders"),
        Key("priorities", PRIORITIES, "Patterns of names of groups, by priority."),
        Key("randomSeed", whole(0, INT64_MAX), "Seed of the expander random."),
        Key("balanceSimilarNodeGroups", BOOLEAN, "Whether similar groups grow together."),
        Key("balancingIgnoreLabels", ListOf(LABEL_KEY), "Labels in which similar groups may differ."),
        Key("balancingLabels", ListOf(LABEL_KEY), "Labels that are compared instead of all."),
        Key("limits", _LIMITS, "Limits over all nodes."),
        Key(
            "rounds",
            whole(1, 10_000),
            "How often the decision is repeated; without the key, until nothing changes any more.",
        ),
        Key("maxNodesPerScaleUp", whole(1, 1_000_000), "Maximum number of nodes that are added at once."),
        Key("newPodScaleUpDelay", TIME, "Age from which a pending pod counts.", into="new_pod_scale_up_delay_seconds"),
        Key(
            "expendablePodsPriorityCutoff",
            whole(-INT32_MAX, INT32_MAX),
            "Priority below which pods do not count.",
        ),
        Key("maxNodeProvisionTime", TIME, "How long a new node may take.", into="max_node_provision_seconds"),
        Key("startupTaints", ListOf(_PREFIX), "Beginnings of taints of nodes that are starting."),
        Key("statusTaints", ListOf(_PREFIX), "Beginnings of taints that describe one node."),
        Key(
            "schedulerNames",
            ListOf(text("the name of a scheduler is empty", "write the schedulerName of pods"), frozenset),
            "Schedulers whose pods count; all without the key.",
        ),
        Key("maxUnready", _UNREADY, "More nodes than both that are not ready stop all changes.", into="unready"),
        Key("enforceMinSize", BOOLEAN, "Whether groups below their minimum grow."),
        Key("scaleDown", SCALE_DOWN, "Which nodes are removed, and when."),
        Key("headroom", _HEADROOM, "Share of all requests that is kept free.", into="headroom_ratio"),
        Key("schedules", _SCHEDULES, "Larger reserves at recurring times."),
        Key(
            "forecasts",
            ListOf(TEXT.then(WorkloadForecast), unique=lambda each: f"the recommendation {each.recommendation!r}"),
            "Entries with `predictive` whose future pods count.",
        ),
        Key("daemonSets", _DAEMON_SETS, "DaemonSets that count on new nodes."),
        Key(
            "autoscalerNamespaces",
            ListOf(NAMESPACE, _with_the_system),
            "Where a Cluster Autoscaler is looked for, beside kube-system.",
        ),
    ),
    _check,
    defaults=ClusterSizeSettings,
)
