"""Default parameters in place of a ConfigMap that `run` would create."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed
from recommender.configuration.needs import needs_of_one
from recommender.decisions.inputs import ConfigMapData

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.kinds.kind import Recommendation


def with_defaults(recommendation: Recommendation, inputs: Inputs) -> tuple[Recommendation, Inputs]:
    """Return both as they are once a missing ConfigMap has been created; a note says that it is missing now."""
    for (namespace, name), default in needs_of_one(recommendation).config_maps.items():
        found = inputs.config_maps.get((namespace, name))
        if default is None or not isinstance(found, Observed) or found.value is not None:
            continue
        note = f"the ConfigMap {namespace}/{name} does not exist: these are the default parameters"
        created: Observed[ConfigMapData | None] = Observed(ConfigMapData(default, ""), found.time)
        recommendation = replace(recommendation, policy=replace(recommendation.policy, note=note))
        inputs = replace(inputs, config_maps={**inputs.config_maps, (namespace, name): created})
    return recommendation, inputs
