"""Lines about the CustomResourceDefinition of a kind: whether this version of it is installed (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adapter.foundation.reports.counts import first_names
from adapter.foundation.reports.lines import Line, error, ok, warning

_SHOWN_KEYS = 3
_INSTALL = "apply crds.yaml of this version with kubectl, or set crds.enabled in the chart"


@dataclass(frozen=True, slots=True)
class DefinedKind:
    """A kind as this version of the program defines it."""

    group: str
    version: str
    plural: str
    keys: frozenset[str]
    """Paths of keys that the schema must have, such as `spec.rule.refresh`."""
    lost: str
    """The consequence if the kind is not installed."""

    @property
    def name(self) -> str:
        """The name of the definition: `metricrules.tidewatch.io`."""
        return f"{self.plural}.{self.group}"

    @property
    def line(self) -> str:
        """The name of the line about the definition."""
        return f"definition/{self.name}"


def not_installed(kind: DefinedKind) -> Line:
    """Return the line about a kind that the cluster does not serve in the version that this program needs."""
    message = f"it is not installed in {kind.version}; affected: {kind.lost}"
    return error(kind.line, message, _INSTALL)


def judge_definition(kind: DefinedKind, served: Mapping[str, Any], definition: Mapping[str, Any] | None) -> Line:
    """Return the line about a kind; `served` lists its version's resources, `definition` is None if unreadable."""
    found = {each.get("name") for each in served.get("resources") or () if isinstance(each, dict)}
    if kind.plural not in found:
        return not_installed(kind)
    if f"{kind.plural}/status" not in found:
        message = "its definition has no subresource status, so no status can be written"
        return error(kind.line, message, _INSTALL)
    if definition is None:
        return ok(kind.line, f"it is served in {kind.version}; its keys were not compared: this caller may not read it")
    missing = sorted(kind.keys - set(_keys_of(_schema_of(definition, kind.version))))
    if missing:
        shown = first_names(missing, _SHOWN_KEYS)
        message = f"its definition belongs to another version of this program: {shown} cannot be written"
        return warning(kind.line, message, _INSTALL)
    return ok(kind.line, f"it is served in {kind.version}, with all keys of this version")


def keys_of_schema(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the paths of the keys of `spec` in the schema of an object."""
    return frozenset(key for key in _keys_of(schema) if key.startswith("spec."))


def _schema_of(definition: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """Return the schema of a version; empty if there is none."""
    spec = definition.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    for each in versions if isinstance(versions, list) else ():
        if isinstance(each, dict) and each.get("name") == version:
            schema = each.get("schema")
            found = schema.get("openAPIV3Schema") if isinstance(schema, dict) else None
            return found if isinstance(found, dict) else {}
    return {}


def _keys_of(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of all keys below a schema; those of a list's items count as the list's own."""
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _keys_of(items, path)
    properties = schema.get("properties")
    for name, child in properties.items() if isinstance(properties, dict) else ():
        yield f"{path}{name}"
        if isinstance(child, dict):
            yield from _keys_of(child, f"{path}{name}.")
