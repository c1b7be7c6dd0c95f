"""Reads `clusterSize:` of a recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.documents.tree import shortened
from adapter.objects.names import label_key_problem
from recommender.cluster_size.model.settings import (
    ClusterSizeSettings,
    HeadroomSchedule,
    WorkloadForecast,
)
from recommender.cluster_size.reading.expanders import read_expanders, read_priorities
from recommender.cluster_size.reading.limits import read_limits, read_unready
from recommender.cluster_size.reading.node_groups import LARGEST_GROUP, read_node_groups
from recommender.cluster_size.reading.options import LONGEST_SECONDS, read_scale_down
from recommender.reading.fields import ValueReader

if TYPE_CHECKING:
    from adapter.documents.tree import DocumentProblem, MappingNode, Node

KEYS: Final = (
    "nodeGroups",
    "expander",
    "priorities",
    "randomSeed",
    "balanceSimilarNodeGroups",
    "balancingIgnoreLabels",
    "balancingLabels",
    "limits",
    "rounds",
    "maxNodesPerScaleUp",
    "newPodScaleUpDelay",
    "expendablePodsPriorityCutoff",
    "maxNodeProvisionTime",
    "maxUnready",
    "enforceMinSize",
    "scaleDown",
    "headroom",
    "schedules",
    "forecasts",
)
_SCHEDULE: Final = {"cron": "0 8 * * mon-fri", "timezone": "Europe/Berlin", "duration": "2h", "headroom": "20%"}
_HEADROOM_LIMIT: Final = 1001
_SHORTEST_SCHEDULE_SECONDS: Final = 60.0
_MOST_ROUNDS: Final = 10_000
_LARGEST_PRIORITY: Final = 2**31 - 1
_LARGEST_SEED: Final = 2**63 - 1


def read_cluster_size(node: Node, problems: list[DocumentProblem]) -> ClusterSizeSettings | None:
    """Return the settings; None if something is wrong: all of it is added to the problems, in the order of the file.

    Problems that the YAML loader found inside the node (`problems_within`) are the caller's to report.
    """
    before = len(problems)
    fields = ValueReader(problems)
    mapping = fields.mapping(node, KEYS)
    if mapping is None:
        return None
    fields.require(mapping, "clusterSize.", {"nodeGroups": "{clusterAPI: {namespace: capi-system}}"}, KEYS)
    settings = _settings(mapping, fields)
    problems[before:] = sorted(problems[before:], key=lambda problem: (problem.line, problem.column))
    return settings if len(problems) == before else None


def _settings(mapping: MappingNode, fields: ValueReader) -> ClusterSizeSettings:
    default = ClusterSizeSettings(read_node_groups(mapping.get("nodeGroups"), fields))
    expanders = read_expanders(mapping.get("expander"), fields)
    priorities = read_priorities(mapping, expanders, fields)
    delay = fields.seconds(mapping.get("newPodScaleUpDelay"), LONGEST_SECONDS)
    provision = fields.seconds(mapping.get("maxNodeProvisionTime"), LONGEST_SECONDS)
    cutoff = fields.count_within(mapping, "expendablePodsPriorityCutoff", -_LARGEST_PRIORITY, _LARGEST_PRIORITY)
    enforce = fields.flag(mapping.get("enforceMinSize"))
    most = fields.count_within(mapping, "maxNodesPerScaleUp", 1, LARGEST_GROUP)
    return ClusterSizeSettings(
        node_groups=default.node_groups,
        expanders=expanders,
        priorities=priorities.by_number,
        priorities_config_map=priorities.config_map,
        random_seed=fields.count_within(mapping, "randomSeed", 0, _LARGEST_SEED) or default.random_seed,
        balance_similar_node_groups=fields.flag(mapping.get("balanceSimilarNodeGroups")) or False,
        balancing_ignore_labels=_label_keys(mapping.get("balancingIgnoreLabels"), fields),
        balancing_labels=_label_keys(mapping.get("balancingLabels"), fields),
        limits=read_limits(mapping.get("limits"), fields),
        rounds=fields.count_within(mapping, "rounds", 1, _MOST_ROUNDS),
        max_nodes_per_scale_up=most or default.max_nodes_per_scale_up,
        new_pod_scale_up_delay_seconds=default.new_pod_scale_up_delay_seconds if delay is None else delay,
        expendable_pods_priority_cutoff=default.expendable_pods_priority_cutoff if cutoff is None else cutoff,
        max_node_provision_seconds=default.max_node_provision_seconds if provision is None else provision,
        unready=read_unready(mapping.get("maxUnready"), fields),
        enforce_min_size=default.enforce_min_size if enforce is None else enforce,
        scale_down=read_scale_down(mapping.get("scaleDown"), fields),
        headroom_ratio=fields.percentage(mapping.get("headroom"), below=_HEADROOM_LIMIT) or 0.0,
        schedules=tuple(_schedule(item, fields) for item in fields.sequence(mapping.get("schedules"))),
        forecasts=_forecasts(mapping.get("forecasts"), fields),
    )


def _label_keys(node: Node | None, fields: ValueReader) -> tuple[str, ...]:
    keys = []
    for item in fields.sequence(node):
        text = fields.text(item)
        if text is None:
            continue
        if (wrong := label_key_problem(text)) is not None:
            fields.problem(item, f"{shortened(text)!r} is no key of a label: {wrong}", "write the key alone")
        keys.append(text)
    return tuple(keys)


def _schedule(node: Node, fields: ValueReader) -> HeadroomSchedule:
    mapping = fields.mapping(node, _SCHEDULE)
    if mapping is None:
        return HeadroomSchedule("", "", 0.0, 0.0)
    fields.require(mapping, "schedules.", _SCHEDULE, _SCHEDULE)
    return HeadroomSchedule(
        cron=fields.cron(mapping.get("cron")),
        timezone=fields.timezone(mapping.get("timezone")),
        duration_seconds=fields.duration(mapping.get("duration"), _SHORTEST_SCHEDULE_SECONDS, LONGEST_SECONDS) or 0.0,
        headroom_ratio=fields.percentage(mapping.get("headroom"), below=_HEADROOM_LIMIT) or 0.0,
    )


def _forecasts(node: Node | None, fields: ValueReader) -> tuple[WorkloadForecast, ...]:
    """Return the recommendations; whether the file has them is only known when all of it has been read."""
    found: dict[str, WorkloadForecast] = {}
    for item in fields.sequence(node):
        name = fields.text(item)
        if name is None:
            continue
        if name in found:
            fields.problem(item, f"the recommendation {shortened(name)!r} is listed twice", "remove one of them")
        found[name] = WorkloadForecast(name)
    return tuple(found.values())
