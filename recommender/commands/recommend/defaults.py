"""Default parameters in place of a ConfigMap that `run` would create."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.cluster.state import Observed
from recommender.configuration.needs import config_map_in
from recommender.decisions.inputs import ConfigMapData

if TYPE_CHECKING:
    from recommender.configuration.model import Recommendation
    from recommender.decisions.inputs import Inputs


def with_defaults(recommendation: Recommendation, inputs: Inputs) -> tuple[Recommendation, Inputs]:
    """Return both as they are once a missing ConfigMap has been created; a note says that it is missing now."""
    config_map = config_map_in(recommendation.subject)
    if config_map is None or config_map.default_params is None:
        return recommendation, inputs
    name = (config_map.namespace, config_map.name)
    found = inputs.config_maps.get(name)
    if not isinstance(found, Observed) or found.value is not None:
        return recommendation, inputs
    note = f"the ConfigMap {config_map.namespace}/{config_map.name} does not exist: these are the default parameters"
    created: Observed[ConfigMapData | None] = Observed(ConfigMapData(config_map.default_params, ""), found.time)
    policy = replace(recommendation.policy, note=note)
    return replace(recommendation, policy=policy), replace(inputs, config_maps={**inputs.config_maps, name: created})
