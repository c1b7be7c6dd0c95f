"""The modes that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recommender.kinds.proportional.modes.interpolated import INTERPOLATED
from recommender.kinds.proportional.modes.ladder import LADDER
from recommender.kinds.proportional.modes.linear import LINEAR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.proportional.modes.mode_definition import ClusterSize, ModeDefinition, ModeSteps
    from recommender.kinds.proportional.parameters import Mode

_ALL: Final[tuple[ModeDefinition[Any], ...]] = (LINEAR, LADDER, INTERPOLATED)

MODES: Final[Mapping[str, ModeDefinition[Any]]] = {mode.name: mode for mode in _ALL}
"""Modes by the key that names them in the configuration and in a ConfigMap."""

_BY_PARAMETERS: Final = {mode.parameters: mode for mode in _ALL}


def steps_of(counts: ClusterSize, parameters: Mode) -> ModeSteps:
    """Return the steps of the mode of these parameters for the counts."""
    return _BY_PARAMETERS[type(parameters)].steps(counts, parameters)
