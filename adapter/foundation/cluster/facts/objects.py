"""Turns decoded objects into facts: the values of `state`, or an error that says what is wrong with the object.

The values share their parts: the labels, quantities and conditions of thousands of nodes differ little.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterNode, NodeAddress, Taint
from adapter.foundation.documents.tree import shorten
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.objects.quantities import Quantity, QuantityError, parse_quantity
from adapter.foundation.objects.shared_texts import shared_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.forms.objects import ConditionForm, NodeForm, QuantityText, SliceForm, TaintForm

SERVICE_LABEL = "kubernetes.io/service-name"
"""The label by which an EndpointSlice names its Service."""
_MOST_NANOS: Final = INT64_MAX * 10**9


class FactError(ValueError):
    """An object lacks what a fact is made from, or states it in a form that cannot be read.

    The message names the object, the field, and what to write instead.
    """


def node_of(form: NodeForm) -> ClusterNode:
    """Return the node. Raises FactError for a quantity or time that cannot be read."""
    name, spec, status = form.metadata.name, form.spec, form.status
    return ClusterNode(
        name=name,
        labels=shared_texts(form.metadata.labels or {}),
        taints=tuple(map(taint_of, (spec.taints or ()) if spec else ())),
        unschedulable=bool(spec and spec.unschedulable),
        conditions=condition_statuses((status.conditions or []) if status else []),
        created=created_of(name, form.metadata.created),
        capacity=_quantities(name, "capacity", (status.capacity or {}) if status else {}),
        allocatable=_quantities(name, "allocatable", (status.allocatable or {}) if status else {}),
        addresses=tuple(
            NodeAddress(sys.intern(one.type), one.address) for one in ((status.addresses or ()) if status else ())
        ),
        uid=form.metadata.uid,
    )


def service_of(form: SliceForm) -> str:
    """Return the name of the Service that a slice belongs to, or `/NAME` of the slice if it belongs to none."""
    service = (form.metadata.labels or {}).get(SERVICE_LABEL)
    return shared_text(service) if service else f"/{form.metadata.name}"


def ready_addresses(form: SliceForm) -> tuple[str, ...]:
    """Return the addresses of a slice that are ready; as in the API, an address without a condition is ready."""
    return tuple(
        address
        for endpoint in form.endpoints or ()
        if endpoint.conditions is None or endpoint.conditions.ready is not False
        for address in endpoint.addresses or ()
    )


def time_of(where: str, text: str) -> float:
    """Return an RFC 3339 time in Unix seconds. Raises FactError, which begins with `where`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise FactError(f"{where} {text!r} is not a time: write it as 2026-01-31T08:00:00Z") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def taint_of(form: TaintForm) -> Taint:
    """Return the taint of a node; a missing value is empty."""
    return Taint(form.key, form.value or "", form.effect)


def shared_texts(labels: Mapping[str, str]) -> dict[str, str]:
    return {shared_text(key): shared_text(value) for key, value in labels.items()}


def condition_statuses(forms: list[ConditionForm]) -> Mapping[str, str]:
    """Return each condition's status by its type. If several `Ready` conditions exist, one that is True wins."""
    return _shared_conditions(tuple((form.type, form.status) for form in forms))


@bounded_cache(MEBIBYTE)
def _shared_conditions(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    statuses = dict(pairs)
    return {**statuses, "Ready": "True"} if ("Ready", "True") in pairs else statuses


def created_of(node: str, text: str | None) -> float | None:
    """Return the time in Unix seconds; None if the object does not state it. Raises FactError."""
    return None if text is None else time_of(f"Node {node}: metadata.creationTimestamp", text)


def _quantities(node: str, field: str, texts: Mapping[str, QuantityText]) -> Mapping[str, Quantity]:
    found = {}
    for resource, text in texts.items():
        try:
            found[sys.intern(resource)] = _node_quantity(str(text))
        except QuantityError as error:
            raise FactError(f"Node {node}: status.{field}.{resource}: {error}") from error
    return found


def cores_of(node: str, text: str) -> Mapping[str, Quantity]:
    """Return a node's allocatable CPU; the mappings are shared. Raises FactError."""
    try:
        return _shared_cores(text)
    except QuantityError as error:
        raise FactError(f"Node {node}: status.allocatable.cpu: {error}") from error


@bounded_cache(MEBIBYTE)
def _shared_cores(text: str) -> Mapping[str, Quantity]:
    return {"cpu": _node_quantity(text)}


def _node_quantity(text: str) -> Quantity:
    """Return a quantity that a node states. Raises QuantityError if no node can have it, since sums would be wrong."""
    found = _quantity(text)
    if not 0 <= found.nanos <= _MOST_NANOS:
        raise QuantityError(f"{shorten(text)!r} is not from 0 to {INT64_MAX}: correct what the node states")
    return found


@bounded_cache(16 * MEBIBYTE)
def _quantity(text: str) -> Quantity:
    return parse_quantity(text)
