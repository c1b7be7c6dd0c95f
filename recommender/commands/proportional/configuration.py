"""Turns the command line of cluster-proportional-autoscaler into a configuration with one recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.service.flags.parsing import UsageError
from recommender.configuration.recommender_configuration import Configuration, LeaderElection
from recommender.decisions.policy_settings import Output, Owners, RecommendationPolicy
from recommender.kinds.kind import Recommendation
from recommender.kinds.proportional.cpa_flags import FlagError, read_default_params, read_node_labels, read_targets
from recommender.kinds.proportional.parameters import NodeFilter, ParametersConfigMap, ProportionalSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.service.flags.table import FlagValues

SHORTEST_STALE_SECONDS = 60.0
_POLLS_UNTIL_STALE = 3


def configuration_of(values: FlagValues, environment: Mapping[str, str]) -> Configuration:
    """Return the configuration that the flags describe. Raises UsageError."""
    namespace = values.text("namespace") or environment.get("MY_POD_NAMESPACE", "")
    if not namespace:
        raise UsageError("--namespace is not set, and neither is MY_POD_NAMESPACE: name the namespace of the targets")
    config_map = values.text("configmap")
    if not config_map:
        raise UsageError("--configmap is empty: name the ConfigMap with the parameters")
    poll_period = values.integer("poll-period-seconds")
    if poll_period < 1:
        raise UsageError(f"--poll-period-seconds is {poll_period}: it must be at least 1")
    try:
        targets = read_targets(values.text("target"), namespace)
        read_node_labels(values.text("nodelabels"))
        defaults = read_default_params(values.text("default-params")) if values.text("default-params") else None
    except FlagError as error:
        raise UsageError(str(error)) from error
    stale_after = max(SHORTEST_STALE_SECONDS, _POLLS_UNTIL_STALE * float(poll_period))
    policy = RecommendationPolicy(
        name=config_map,
        type="proportional",
        targets=targets,
        outputs=frozenset({Output.METRIC, Output.SCALE}),
        # The operator has named these targets, and the rights of the original program do not include HPAs.
        owners=Owners(autoscalers_required=False),
        stale_after_seconds=stale_after,
    )
    subject = ProportionalSettings(
        config_map=ParametersConfigMap(namespace, config_map, defaults),
        node_filter=NodeFilter(
            selector=values.text("nodelabels"),
            ignore_taints=frozenset(values.texts("ignore-taints")),
            ignore_virtual_nodes=values.boolean("ignore-virtual-nodes"),
        ),
    )
    return Configuration(
        poll_interval_seconds=float(poll_period),
        stale_after_seconds=stale_after,
        leader_election=LeaderElection(values.boolean("leader-elect"), namespace, config_map),
        recommendations=(Recommendation(policy, subject),),
    )
