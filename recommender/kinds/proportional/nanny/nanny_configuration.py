"""The base and the extra of each resource, from the command line and from the file `NannyConfiguration`.

Sources: `nanny/main/pod_nanny.go` and `v1alpha1/defaults.go` of addon-resizer in kubernetes/autoscaler,
branch addon-resizer-release-1.8.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from adapter.foundation.documents.load import DocumentError, load_documents, nearest_word, problems_within
from adapter.foundation.objects.quantities import Quantity, QuantityError, parse_quantity
from recommender.kinds.proportional.nanny.estimators import GrowingResource

API_VERSION: Final = "nannyconfig/v1alpha1"
KIND: Final = "NannyConfiguration"
NO_VALUE: Final = "MISSING"
"""How flags and files of addon-resizer say that there is no base."""

_KEYS: Final = {
    "baseCPU": "base_cpu",
    "cpuPerNode": "extra_cpu",
    "baseMemory": "base_memory",
    "memoryPerNode": "extra_memory",
}


class NannyConfigurationError(ValueError):
    """A configuration cannot be used; the message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class NannyParameters:
    """The base and the extra of each resource, as texts; empty if there is none."""

    base_cpu: str = ""
    extra_cpu: str = ""
    base_memory: str = ""
    extra_memory: str = ""
    base_storage: str = ""
    extra_storage: str = ""


@dataclass(frozen=True, slots=True)
class NannyFile:
    """The content of a file."""

    parameters: NannyParameters
    ignored: tuple[str, ...]
    """A note on each key that is ignored, as in addon-resizer."""


def parse_nanny_configuration(text: str, file: str) -> NannyFile:
    """Return the content of a file; `file` is its name in messages. Raises NannyConfigurationError."""
    try:
        root = load_documents(text, file).root
        if root is None or root.is_null:
            raise NannyConfigurationError(f"{file}: it is empty: write `apiVersion: {API_VERSION}` and `kind: {KIND}`")
        wrong = next(problems_within(root), None)
        if wrong is not None:
            raise NannyConfigurationError(str(wrong))
        content = root.mapping()
        for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            node = content.get(key)
            if node is None or node.text() != wanted:
                raise NannyConfigurationError(str((node or content).problem(f"`{key}` is not {wanted}", "write it")))
        given = {_KEYS[key]: node.text() for key in _KEYS if (node := content.get(key)) is not None}
        unknown = content.unknown((*_KEYS, "apiVersion", "kind"))
        notes = tuple(
            f"{file}: the key `{each.name}` has no meaning here{_suggested_key(each.name)}" for each in unknown
        )
    except DocumentError as error:
        raise NannyConfigurationError(str(error)) from error
    parameters = NannyParameters(**given)
    growing_resources(parameters, file)
    return NannyFile(parameters, notes)


def overlaid(flags: NannyParameters, file: NannyParameters) -> NannyParameters:
    """Return the file's parameters over those of the flags; as in addon-resizer, a file's extra of `0` is ignored."""
    merged = {
        each.name: given
        for each in fields(file)
        if (given := getattr(file, each.name)) not in {"", NO_VALUE}
        and not (each.name.startswith("extra") and given == "0")
    }
    return replace(flags, **merged)


def growing_resources(parameters: NannyParameters, origin: str) -> tuple[GrowingResource, ...]:
    """Return the resources that have a base; messages name `origin` as the source. Raises NannyConfigurationError.

    An extra without a base has no effect, but must still be a quantity.
    """
    rows = (
        ("cpu", parameters.base_cpu, parameters.extra_cpu),
        ("memory", parameters.base_memory, parameters.extra_memory),
        ("storage", parameters.base_storage, parameters.extra_storage),
    )
    read = [
        (GrowingResource(name, _quantity(origin, base), _quantity(origin, extra)), base) for name, base, extra in rows
    ]
    return tuple(resource for resource, base in read if base not in {"", NO_VALUE})


def _quantity(origin: str, text: str) -> Quantity:
    """Return the quantity in a text; 0 if there is none. Raises NannyConfigurationError."""
    try:
        found = parse_quantity("0" if text in {"", NO_VALUE} else text)
    except QuantityError as error:
        raise NannyConfigurationError(f"{origin}: {error}") from error
    if found.nanos < 0:
        raise NannyConfigurationError(f"{origin}: {text} is below 0: write a quantity of 0 or more")
    return found


def _suggested_key(key: str) -> str:
    meant = nearest_word(key, _KEYS)
    return f": did you mean `{meant}`?" if meant else ""
