"""Turns affinity, spread constraints and tolerations of a pod's spec into values, cached by their encoded bytes.

The caches make pods of one controller share their values. Every function raises FactError for what it cannot read: a
pod is never placed without one of its constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.requirements import label_selector_of, node_terms_of
from adapter.foundation.cluster.forms.scheduling_pods import AffinityForm, PodTermForm, SpreadForm, TolerationForm
from adapter.foundation.cluster.values.constraints import PodTerm, SpreadConstraint, TaintEffect, Toleration
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.requirements import Operator, Requirement, SelectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.cluster.values.constraints import NodeSelectorTerm

T = TypeVar("T")
Labels = tuple[tuple[str, str], ...]

_SHARED_BYTES: Final = 8 * MEBIBYTE
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATION_OPERATORS: Final = frozenset({"Equal", "Exists", "Lt", "Gt"})
_NUMERIC: Final = frozenset({"Lt", "Gt"})
_EFFECTS: Final = frozenset({*TaintEffect, "PreferNoSchedule"})
"""`PreferNoSchedule` repels no pod, so no filter considers it, but pods may tolerate it."""


class Affinity(NamedTuple):
    """The required terms of `spec.affinity`."""

    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    pods: tuple[PodTerm, ...] = ()
    anti: tuple[PodTerm, ...] = ()


def decode_part(where: str, raw: bytes, form: type[T]) -> T | None:
    """Return the decoded part of a spec; None if it is absent or null. Raises FactError."""
    if not raw:
        return None
    try:
        found: T | None = decoder_of(form | None).decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FactError(f"{where}: {error}") from error
    return found


def annotations_of(where: str, raw: bytes) -> Mapping[str, str]:
    """Return the annotations of the object that `where` names. Raises FactError."""
    return decode_part(f"{where}: metadata.annotations", raw, dict[str, str]) or {}


@bounded_cache(_SHARED_BYTES)
def affinity_of(raw: bytes, namespace: str, labels: Labels) -> Affinity:
    """Return the required terms. `labels` are the pod's labels, to which a term may refer by key. Raises FactError."""
    form = decode_part("spec.affinity", raw, AffinityForm)
    if form is None:
        return Affinity()
    own = dict(labels)
    return Affinity(
        node_terms_of(f"spec.affinity.nodeAffinity.{_REQUIRED}", form.node.required if form.node else None),
        tuple(_pod_terms("podAffinity", form.pod.required if form.pod else None, namespace, own)),
        tuple(_pod_terms("podAntiAffinity", form.anti.required if form.anti else None, namespace, own)),
    )


@bounded_cache(_SHARED_BYTES)
def spread_of(raw: bytes, labels: Labels) -> tuple[SpreadConstraint, ...]:
    """Return the spread constraints that a node must satisfy, without mere preferences. Raises FactError."""
    own = dict(labels)
    forms = decode_part("spec.topologySpreadConstraints", raw, list[SpreadForm])
    constraints = (
        _spread_constraint(f"spec.topologySpreadConstraints[{number}]", form, own)
        for number, form in enumerate(forms or ())
    )
    return tuple(constraint for constraint in constraints if constraint is not None)


@bounded_cache(_SHARED_BYTES)
def tolerations_of(raw: bytes) -> tuple[Toleration, ...]:
    """Return the tolerations. Raises FactError."""
    forms = decode_part("spec.tolerations", raw, list[TolerationForm])
    return tuple(_toleration(f"spec.tolerations[{number}]", form) for number, form in enumerate(forms or ()))


@bounded_cache(_SHARED_BYTES)
def node_selector_of(raw: bytes) -> Labels:
    """Return `spec.nodeSelector`, sorted by key. Raises FactError."""
    pairs = tuple(sorted((decode_part("spec.nodeSelector", raw, dict[str, str]) or {}).items()))
    for key, value in pairs:
        _label_requirement("spec.nodeSelector", key, Operator.EQUALS, value)
    return pairs


def _pod_terms(
    part: str, forms: Iterable[PodTermForm] | None, namespace: str, labels: Mapping[str, str]
) -> Iterator[PodTerm]:
    for number, form in enumerate(forms or ()):
        where = f"spec.affinity.{part}.{_REQUIRED}[{number}]"
        if not form.topology_key:
            raise FactError(f"{where}: topologyKey is missing: name a label of nodes")
        further = (
            *_label_key_requirements(where, form.match_label_keys, Operator.IN, labels),
            *_label_key_requirements(where, form.mismatch_label_keys, Operator.NOT_IN, labels),
        )
        namespaces = frozenset(form.namespaces or ())
        if not namespaces and form.namespace_selector is None:
            namespaces = frozenset({namespace})
        yield PodTerm(
            topology_key=form.topology_key,
            selector=label_selector_of(f"{where}.labelSelector", form.label_selector, further),
            namespaces=namespaces,
            namespace_selector=label_selector_of(f"{where}.namespaceSelector", form.namespace_selector),
        )


def _label_key_requirements(
    where: str, keys: Iterable[str] | None, operator: Operator, labels: Mapping[str, str]
) -> Iterator[Requirement]:
    """Yield the requirements that the API server derives from label keys; keys that the pod lacks are ignored."""
    for key in keys or ():
        if key in labels:
            yield _label_requirement(where, key, operator, labels[key])


def _label_requirement(where: str, key: str, operator: Operator, value: str) -> Requirement:
    try:
        return Requirement(key, operator, (value,))
    except SelectorError as error:
        raise FactError(f"{where}: {error}") from error


def _spread_constraint(where: str, form: SpreadForm, labels: Mapping[str, str]) -> SpreadConstraint | None:
    if form.when_unsatisfiable not in {"DoNotSchedule", "ScheduleAnyway"}:
        known = "use DoNotSchedule or ScheduleAnyway"
        raise FactError(f"{where}: whenUnsatisfiable {form.when_unsatisfiable!r} is not known: {known}")
    if form.when_unsatisfiable == "ScheduleAnyway":
        return None
    if not form.topology_key:
        raise FactError(f"{where}: topologyKey is missing: name a label of nodes")
    if form.max_skew < 1:
        raise FactError(f"{where}: maxSkew is {form.max_skew}: write at least 1")
    if form.min_domains is not None and form.min_domains < 1:
        raise FactError(f"{where}: minDomains is {form.min_domains}: write at least 1")
    return SpreadConstraint(
        topology_key=form.topology_key,
        max_skew=form.max_skew,
        selector=label_selector_of(
            f"{where}.labelSelector",
            form.label_selector,
            _label_key_requirements(where, form.match_label_keys, Operator.IN, labels),
        ),
        min_domains=form.min_domains or 1,
        honors_node_affinity=_is_honored(where, "nodeAffinityPolicy", form.node_affinity_policy, otherwise=True),
        honors_node_taints=_is_honored(where, "nodeTaintsPolicy", form.node_taints_policy, otherwise=False),
    )


def _is_honored(where: str, field: str, policy: str | None, *, otherwise: bool) -> bool:
    if policy is None:
        return otherwise
    if policy not in {"Honor", "Ignore"}:
        raise FactError(f"{where}: {field} {policy!r} is not known: use Honor or Ignore")
    return policy == "Honor"


def _toleration(where: str, form: TolerationForm) -> Toleration:
    key, operator, value, effect = form.key or "", form.operator or "Equal", form.value or "", form.effect or ""
    if operator not in _TOLERATION_OPERATORS:
        raise FactError(f"{where}: the operator {operator!r} is not known: use Equal or Exists")
    if not key and operator != "Exists":
        raise FactError(f"{where}: there is no key, so the operator must be Exists, not {operator}")
    if operator == "Exists" and value:
        raise FactError(f"{where}: the operator Exists takes no value: remove {value!r}")
    if effect and effect not in _EFFECTS:
        raise FactError(f"{where}: the effect {effect!r} is not known: use one of {', '.join(sorted(_EFFECTS))}")
    if operator in _NUMERIC:
        # Checked as the numeric operators of selectors are: an integer of 64 bits.
        _label_requirement(where, "number", Operator.GREATER_THAN, value)
    return Toleration(key, operator, value, effect)
