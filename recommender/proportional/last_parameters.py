"""Parameters from a ConfigMap; while it cannot be used, the last good ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.state import Unknown
from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.decisions.memory import LastParameters
from recommender.proportional.config_map import ParametersError, mode_entry, parse_parameters

if TYPE_CHECKING:
    from recommender.decisions.inputs import ConfigMapData, Inputs
    from recommender.proportional.parameters import Mode, ParametersConfigMap


def current_parameters(
    config_map: ParametersConfigMap, inputs: Inputs, last: LastParameters | None
) -> tuple[Mode, LastParameters, str]:
    """Return the parameters, the text that they come from, and a note if they are the last good ones.

    Unlike counts, parameters do not become wrong with age, so the time at which they were read does not matter.
    Raises CalculationError or InputMissingError if the ConfigMap cannot be used, and neither could it ever before.
    """
    name = f"the ConfigMap {config_map.namespace}/{config_map.name}"
    fact = inputs.config_maps.get((config_map.namespace, config_map.name), Unknown("it has not been read yet"))
    if isinstance(fact, Unknown):
        reason = f"{name} cannot be read: {fact.reason}"
        return _kept(last, reason) or _raise(InputMissingError(reason))
    if fact.value is None:
        reason = f"{name} does not exist"
        return _kept(last, reason) or _raise(CalculationError(f"{reason}: create it, or set default parameters"))
    try:
        return *_read(fact.value), ""
    except ParametersError as e:
        reason = f"{name} cannot be used: {e}"
        return _kept(last, reason) or _raise(CalculationError(reason))


def _read(found: ConfigMapData) -> tuple[Mode, LastParameters]:
    mode, text = mode_entry(found.data)
    return parse_parameters(mode, text), LastParameters(mode, text, found.resource_version)


def _kept(last: LastParameters | None, reason: str) -> tuple[Mode, LastParameters, str] | None:
    """Return the last good parameters with a note; None if there are none that this version can read."""
    if last is None:
        return None
    try:
        parameters = parse_parameters(last.mode, last.text)
    except ParametersError:
        return None
    return parameters, last, f"{reason}; the parameters of resourceVersion {last.resource_version} stay in use"


def _raise(error: Exception) -> tuple[Mode, LastParameters, str]:
    raise error
