"""Parameters from a ConfigMap, or the last good parameters while it cannot be used."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Unknown
from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.kinds.proportional.config_map_parsing import ParametersError, mode_entry, parse_parameters
from recommender.kinds.proportional.memory import LastParameters

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.kinds.proportional.parameters import Mode, ParametersConfigMap


def current_parameters(
    config_map: ParametersConfigMap, inputs: Inputs, last: LastParameters | None
) -> tuple[Mode, LastParameters, str]:
    """Return the parameters, the text that they come from, and a note if they are the last good ones.

    Unlike counts, parameters do not become wrong with age, so the time at which they were read does not matter.
    Raises CalculationError or InputMissingError if the ConfigMap cannot be used and never could be.
    """
    found = _read_parameters(config_map, inputs)
    if not isinstance(found, Exception):
        return *found, ""
    with suppress(ParametersError):
        if last is not None:
            note = f"{found}; the parameters of resourceVersion {last.resource_version} stay in use"
            return parse_parameters(last.mode, last.text), last, note
    # There are none, or this version cannot read them.
    raise found


def why_former(config_map: ParametersConfigMap, inputs: Inputs, in_use: LastParameters | None) -> str:
    """Return why former parameters are in use instead of the ConfigMap's; empty if the ConfigMap can be used."""
    found = _read_parameters(config_map, inputs)
    return str(found) if in_use is not None and isinstance(found, Exception) else ""


def _read_parameters(
    config_map: ParametersConfigMap, inputs: Inputs
) -> tuple[Mode, LastParameters] | CalculationError | InputMissingError:
    """Return the current content of the ConfigMap, or why it cannot be used."""
    name = f"the ConfigMap {config_map.namespace}/{config_map.name}"
    fact = inputs.config_maps.get((config_map.namespace, config_map.name), Unknown("it has not been read yet"))
    if isinstance(fact, Unknown):
        return InputMissingError(f"{name} cannot be read: {fact.reason}")
    if fact.value is None:
        return CalculationError(f"{name} does not exist: create it, or set default parameters")
    try:
        mode, text = mode_entry(fact.value.data)
        return parse_parameters(mode, text), LastParameters(mode, text, fact.value.resource_version)
    except ParametersError as e:
        return CalculationError(f"{name} cannot be used: {e}")
