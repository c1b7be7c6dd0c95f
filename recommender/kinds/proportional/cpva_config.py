"""The configuration of cluster-proportional-vertical-autoscaler: how each container's requests and limits grow.

It is read with the laxness of Go's encoding/json, which that program uses: keys match in any case, unknown ones are
ignored, and null counts as absent. Source: `ScaleConfig` in `autoscaler_server.go` of that project.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NoReturn, TypeAlias

from adapter.foundation.documents.scalars import parse_whole
from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.objects.quantities import Format, QuantityError, parse_quantity, quantity_text
from recommender.kinds.proportional.go_json import (
    GoJsonError,
    Json,
    JsonNumber,
    JsonObject,
    fold_key,
    parse_go_json,
    value_text,
)
from recommender.kinds.proportional.parameters import ResourceStep
from recommender.kinds.proportional.sizes import ContainerResources, size_of

ScaleConfig: TypeAlias = dict[str, dict[str, dict[str, ResourceStep]]]
"""How sizes grow, by container, by `requests` or `limits`, and by resource."""

_SECTIONS: Final = ("requests", "limits")
_AMOUNTS: Final = ("base", "max", "step")
_PER_STEP: Final = {"coresperstep": "coresPerStep", "nodesperstep": "nodesPerStep"}
_FIX: Final = 'write {"CONTAINER": {"requests": {"cpu": {"base": "100m", "step": "10m", "nodesPerStep": 1}}}}'


class ScaleConfigError(ValueError):
    """The configuration cannot be used; the message says what is wrong and what to do."""


def parse_scale_config(text: str) -> ScaleConfig:
    """Return the configuration in a JSON text. Raises ScaleConfigError."""
    try:
        parsed = parse_go_json(text)
    except GoJsonError as error:
        raise ScaleConfigError(str(error)) from error
    if parsed is None:
        return {}
    if not isinstance(parsed, JsonObject):
        raise ScaleConfigError(f"it is {value_text(parsed)}, and not an object: {_FIX}")
    return {container: _container(container, value) for container, value in parsed.entries}


def override_defaults(defaults: ScaleConfig, config: ScaleConfig) -> ScaleConfig:
    """Return the defaults, overridden by the containers of a configuration. Raises ScaleConfigError."""
    whole = {**defaults, **config}
    if not any(steps for sections in whole.values() for steps in sections.values()):
        raise ScaleConfigError(f"it names no size of any container: {_FIX}")
    return whole


def container_sizes(nodes: int, cores: int, config: ScaleConfig) -> ContainerResources:
    """Return the sizes as quantities, spelt as that program spells them.

    A DaemonSet is rolled out again even if only the spelling in its template changes. That program writes memory and
    storage in powers of 1000, and everything else in powers of 1024.
    """
    return {
        container: {
            section: {
                resource: quantity_text(size_of(nodes, cores, step).milli_value(), _format_of(resource))
                for resource, step in steps.items()
            }
            for section, steps in sections.items()
            if steps
        }
        for container, sections in config.items()
    }


def _format_of(resource: str) -> Format:
    return Format.DECIMAL_SI if resource in {"memory", "storage"} else Format.BINARY_SI


def _container(container: str, value: Json) -> dict[str, dict[str, ResourceStep]]:
    sections: dict[str, dict[str, ResourceStep]] = {}
    for key, content in _entries(container, value):
        section = fold_key(key)
        if section in _SECTIONS:
            where = f"{container}.{section}"
            steps = {resource: _step(f"{where}.{resource}", step) for resource, step in _entries(where, content)}
            # This is how Go reads into an existing map.
            sections.setdefault(section, {}).update(steps)
    return sections


def _entries(where: str, value: Json) -> Iterator[tuple[str, Json]]:
    """Yield keys and values of an object, and nothing for null. Raises ScaleConfigError for anything else."""
    if value is None:
        return
    if not isinstance(value, JsonObject):
        _refuse(where, value, "an object")
    yield from value.entries


def _step(where: str, value: Json) -> ResourceStep:
    amounts: dict[str, str] = {}
    counts: dict[str, int] = {}
    for key, content in _entries(where, value):
        folded = fold_key(key)
        if folded in _AMOUNTS:
            amounts.pop(folded, None)
            if content is not None:
                amounts[folded] = _amount(f"{where}.{folded}", content)
        elif folded in _PER_STEP:
            counts.pop(folded, None)
            if content is not None:
                counts[folded] = _count(f"{where}.{_PER_STEP[folded]}", content)
    return ResourceStep(
        amounts.get("base", "0"),
        amounts.get("max"),
        amounts.get("step"),
        cores_per_step=counts.get("coresperstep", 0),
        nodes_per_step=counts.get("nodesperstep", 0),
    )


def _amount(where: str, value: Json) -> str:
    """Return a quantity in thousandths, rounded up as in that program. Raises ScaleConfigError."""
    text = value.text if isinstance(value, JsonNumber) else value
    if not isinstance(text, str):
        _refuse(where, value, 'a quantity, such as "100m" or "64Mi"')
    try:
        found = parse_quantity(text.strip())
    except QuantityError as error:
        raise ScaleConfigError(f"`{where}`: {error}") from error
    milli = found.milli_value()
    if not 0 <= milli <= INT64_MAX:
        _refuse(where, value, "a quantity from 0 to 9223372036854775")
    return quantity_text(milli, found.format)


def _count(where: str, value: Json) -> int:
    try:
        return parse_whole(value.text if isinstance(value, JsonNumber) else "")
    except ValueError:
        _refuse(where, value, "a whole number, such as 16")


def _refuse(where: str, value: Json, wanted: str) -> NoReturn:
    raise ScaleConfigError(f"`{where}` is {value_text(value)}: write {wanted}")
