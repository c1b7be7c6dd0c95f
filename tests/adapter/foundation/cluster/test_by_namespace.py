from __future__ import annotations

import pytest

from adapter.foundation.cluster.values.hpas_by_namespace import EVERYWHERE, AutoscalersByNamespace, owners_by_namespace
from adapter.foundation.cluster.values.state import Autoscaler, ClusterNeeds, Observed, Unknown
from adapter.foundation.cluster.watch.plan import plan_watches


def autoscaler(namespace: str, name: str) -> Autoscaler:
    return Autoscaler(namespace, name, {}, "apps/v1", "Deployment", name, 1, 5, None, None, ())


A, B, C = autoscaler("shop", "a"), autoscaler("shop", "b"), autoscaler("talk", "c")


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        ("shop", Observed((A, B), 7.0)),
        ("talk", Observed((C,), 7.0)),
        ("empty", Observed((), 7.0)),
        ("own", Unknown("its own watch is refused")),
    ],
)
def test_a_watch_of_all_namespaces_covers_each_namespace_without_its_own_watch(
    namespace: str, expected: Observed[object] | Unknown
) -> None:
    own = Unknown("its own watch is refused")
    found = AutoscalersByNamespace({EVERYWHERE: Observed((A, B, C), 7.0), "own": own})
    assert found.get(namespace) == expected


def test_owners_that_are_unknown_in_all_namespaces_are_unknown_in_each() -> None:
    found = AutoscalersByNamespace({EVERYWHERE: Unknown("list is forbidden", is_refused=True)})
    assert found["shop"] == Unknown("list is forbidden", is_refused=True)


def test_an_hpa_whose_namespace_cannot_be_read_may_own_any_target() -> None:
    odd = {EVERYWHERE: "1 cannot be read", "talk": "no target"}
    found = AutoscalersByNamespace(owners_by_namespace(EVERYWHERE, Observed((A, B, C), 7.0), odd))
    assert found["shop"] == Unknown("1 cannot be read")


def test_an_unwatched_namespace_is_absent() -> None:
    found = AutoscalersByNamespace({"shop": Observed((A,), 7.0)})
    assert found.get("talk") is None
    assert dict(found) == {"shop": Observed((A,), 7.0)}


def test_all_namespaces_need_one_watch() -> None:
    plan = plan_watches(ClusterNeeds(autoscaler_namespaces=frozenset({EVERYWHERE})))
    assert plan.autoscalers[EVERYWHERE].namespace is None
