"""Determines which pods a Service or a controller of pods selects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.forms.pods import LabelSelectorForm, SelectingForm
from adapter.foundation.cluster.values.state import PodSelector
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.requirements import Operator, Requirement, SelectorError
from adapter.foundation.objects.selectors import Selector
from adapter.foundation.objects.shared_texts import shared_text

SELECTING_KINDS: Final = {
    "Service": "",
    "ReplicationController": "",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
}
"""The kinds that select pods, with their API groups. DaemonSets are needed only for their UIDs."""

_BY_MAP: Final = frozenset({"Service", "ReplicationController"})
_MAP: Final[msgspec.json.Decoder[dict[str, str] | None]] = decoder_of(dict[str, str] | None)
_SELECTOR: Final[msgspec.json.Decoder[LabelSelectorForm | None]] = decoder_of(LabelSelectorForm | None)
OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def pod_selector_of(kind: str, form: SelectingForm) -> PodSelector | None:
    """Return which pods an object selects; None for a controller with zero replicas, as it has no pods to place.

    Most ReplicaSets have no replicas, since each Deployment keeps its earlier ReplicaSets. Raises FactError for a
    selector that cannot be read.
    """
    metadata, spec = form.metadata, form.spec
    if spec is not None and spec.replicas == 0 and kind != "Service":
        return None
    namespace = shared_text(metadata.namespace or "default")
    raw = spec.selector if spec else msgspec.Raw()
    try:
        text = str(Selector(tuple(_requirements(kind, raw)))) if raw else ""
    except (msgspec.DecodeError, UnicodeDecodeError, SelectorError) as error:
        raise FactError(f"{kind} {namespace}/{metadata.name}: spec.selector: {error}") from error
    return PodSelector(kind, namespace, metadata.name, metadata.uid, shared_text(text))


def selector_place(selector: PodSelector) -> str:
    """Return the key by which the selectors of a kind are sorted."""
    return f"{selector.namespace}/{selector.name}"


def _requirements(kind: str, raw: msgspec.Raw) -> Iterator[Requirement]:
    """Return the requirements; an empty selector selects nothing here, since no controller may have one."""
    selector = LabelSelectorForm(_MAP.decode(raw)) if kind in _BY_MAP else _SELECTOR.decode(raw)
    return selector_requirements(selector or LabelSelectorForm())


def selector_requirements(form: LabelSelectorForm) -> Iterator[Requirement]:
    """Yield the requirements of a label selector. Raises SelectorError."""
    for key, value in (form.labels or {}).items():
        yield Requirement(key, Operator.EQUALS, (value,))
    for expression in form.expressions or ():
        operator = OPERATORS.get(expression.operator)
        if operator is None:
            raise SelectorError(
                f"the operator {expression.operator!r} is not known: use In, NotIn, Exists or DoesNotExist"
            )
        yield Requirement(expression.key, operator, tuple(expression.values or ()))
