"""Whatever an object states, its conversion gives a value or a FactError that names the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.scheduling_pods import scheduled_pod_of
from adapter.foundation.cluster.facts.sized_nodes import sized_node_of
from adapter.foundation.cluster.forms.scheduling_objects import SizedNodeForm
from adapter.foundation.cluster.forms.scheduling_pods import SchedulingPodForm
from adapter.foundation.cluster.scheduling.kinds import SCHEDULING_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.scheduling.kinds import SchedulingKind

F = TypeVar("F")
V = TypeVar("V")

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WORDS = st.sampled_from(
    [
        "",
        "In",
        "NotIn",
        "Gt",
        "Exists",
        "Equal",
        "DoNotSchedule",
        "zone",
        "metadata.name",
        "a b",
        "é",
        "1",
        "TCP",
        "Honor",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers(-2, 70000) | st.floats(allow_nan=False) | WORDS | st.text(max_size=3)
LABELS = st.dictionaries(WORDS, WORDS, max_size=2)


def near(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return objects that have some of these fields, or any other value."""
    return st.fixed_dictionaries({}, optional=fields) | SCALARS


def lists(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=2) | SCALARS


EXPRESSIONS = lists(near(key=WORDS, operator=WORDS, values=lists(WORDS)))
SELECTORS = near(matchLabels=LABELS, matchExpressions=EXPRESSIONS)
NODE_SELECTORS = near(nodeSelectorTerms=lists(near(matchExpressions=EXPRESSIONS, matchFields=EXPRESSIONS)))
POD_TERMS = lists(
    near(
        topologyKey=WORDS,
        labelSelector=SELECTORS,
        namespaceSelector=SELECTORS,
        namespaces=lists(WORDS),
        matchLabelKeys=lists(WORDS),
        mismatchLabelKeys=lists(WORDS),
    )
)
QUANTITIES = st.sampled_from(["1", "100m", "1Gi", "-1", "many", "", "1e900", 2, 0.5])
RESOURCES = near(requests=st.dictionaries(st.sampled_from(["cpu", "memory", "storage"]), QUANTITIES, max_size=2))
SPECS = near(
    nodeName=WORDS,
    nodeSelector=LABELS | SCALARS,
    affinity=near(
        nodeAffinity=near(**{REQUIRED: NODE_SELECTORS}),
        podAffinity=near(**{REQUIRED: POD_TERMS}),
        podAntiAffinity=near(**{REQUIRED: POD_TERMS}),
    ),
    topologySpreadConstraints=lists(
        near(
            maxSkew=SCALARS,
            topologyKey=WORDS,
            whenUnsatisfiable=WORDS,
            labelSelector=SELECTORS,
            minDomains=SCALARS,
            nodeTaintsPolicy=WORDS,
            matchLabelKeys=lists(WORDS),
        )
    ),
    tolerations=lists(near(key=WORDS, operator=WORDS, value=WORDS, effect=WORDS)),
    volumes=lists(
        near(
            name=WORDS,
            persistentVolumeClaim=near(claimName=WORDS),
            ephemeral=SCALARS | st.just({}),
            emptyDir=near(medium=WORDS),
            rbd=near(monitors=lists(WORDS), image=WORDS),
        )
    ),
    schedulingGates=lists(near(name=WORDS)),
    resourceClaims=SCALARS,
    hostNetwork=st.booleans(),
    containers=st.just([{"name": "c"}])
    | lists(near(name=WORDS, ports=lists(near(hostPort=SCALARS, protocol=WORDS)), resources=RESOURCES)),
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("a")},
    optional={
        "labels": LABELS,
        "annotations": st.dictionaries(
            st.sampled_from(["kubernetes.io/config.mirror", "x", "\\"]), SCALARS, max_size=2
        ),
        "deletionTimestamp": st.sampled_from(["2026-11-22T05:00:30Z", "soon"]),
        "creationTimestamp": st.sampled_from(["2026-11-22T05:00:30Z", "", "0001-01-01T00:00:00Z"]),
        "ownerReferences": lists(near(kind=WORDS, name=WORDS, controller=st.booleans())),
    },
)
FIELDS = {
    "selector": SELECTORS,
    "template": near(metadata=near(labels=LABELS), spec=SPECS),
    "replicas": SCALARS,
    "nodeAffinity": near(required=NODE_SELECTORS),
    "capacity": st.dictionaries(st.just("storage"), QUANTITIES),
    "resources": RESOURCES,
    "volumeName": WORDS,
    "drivers": lists(near(name=WORDS, allocatable=near(count=SCALARS))),
}
REST = {
    "provisioner": WORDS,
    "volumeBindingMode": WORDS,
    "allowedTopologies": lists(near(matchLabelExpressions=EXPRESSIONS)),
    "value": SCALARS,
    "status": near(phase=WORDS, disruptionsAllowed=SCALARS),
}


@settings(max_examples=150)
@given(METADATA, SPECS)
def test_a_pod_is_read_or_refused_with_an_error_that_names_it(metadata: dict[str, Any], spec: object) -> None:
    try:
        form = msgspec.json.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}), type=SchedulingPodForm)
    except msgspec.ValidationError:
        return
    pod = _value_or_reason(scheduled_pod_of, form)
    if isinstance(pod, str):
        assert pod.startswith("Pod default/a: ")
        assert not (form.spec and form.spec.node)
    else:
        assert pod.facts is not None
        hash(pod.facts.scheduling)
        assert not pod.facts.problem or pod.node


@pytest.mark.parametrize("kind", SCHEDULING_KINDS, ids=lambda kind: kind.name)
@settings(max_examples=25)
@given(metadata=METADATA, spec=near(**FIELDS), rest=near(**REST))
def test_an_object_is_read_or_refused_with_an_error_that_names_it(
    kind: SchedulingKind, metadata: dict[str, Any], spec: object, rest: object
) -> None:
    content = {"metadata": metadata, "spec": spec} | (rest if isinstance(rest, dict) else {})
    try:
        form = msgspec.json.decode(msgspec.json.encode(content), type=kind.form)
    except msgspec.ValidationError:
        return
    value = _value_or_reason(kind.convert, form)
    assert not isinstance(value, str) or value.startswith(f"{kind.name} ")


@settings(max_examples=50)
@given(METADATA, st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES, max_size=2))
def test_a_node_is_read_or_refused_with_an_error_that_names_it(
    metadata: dict[str, Any], amounts: dict[str, object]
) -> None:
    content = {"metadata": metadata, "status": {"allocatable": amounts}}
    form = msgspec.json.decode(msgspec.json.encode(content), type=SizedNodeForm)
    value = _value_or_reason(sized_node_of, form)
    assert not isinstance(value, str) or value.startswith("Node a: ")


def _value_or_reason(convert: Callable[[F], V], form: F) -> V | str:
    try:
        return convert(form)
    except FactError as error:
        return str(error)
