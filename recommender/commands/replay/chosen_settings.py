"""The entry with `clusterSize` that a command processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.documents.tree import nearest_word
from adapter.foundation.service.flags.parsing import UsageError
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, cluster_size_settings

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration


def chosen_settings(name: str, configuration: Configuration) -> ClusterSizeSettings:
    """Return the settings of the named recommendation or, without a name, those of the only one. Raises UsageError."""
    found = cluster_size_settings(configuration.recommendations)
    if name in found:
        return found[name]
    refused = next((each for each in configuration.refused if each.name == name or not name), None)
    if refused is not None:
        raise UsageError(str(refused.problems[0]))
    known = ", ".join(found) or "none"
    if name:
        meant = nearest_word(name, found)
        hint = f"did you mean {meant}?" if meant else f"there are {known}"
        raise UsageError(f"--recommendation: there is no recommendation {name!r} with clusterSize: {hint}")
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise UsageError("--config: no recommendation has clusterSize: add one, with its node groups")
    raise UsageError(f"--config has several recommendations with clusterSize ({known}): write --recommendation=NAME")
