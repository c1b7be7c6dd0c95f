"""The objects that are in force: the file wins, the older object wins, and a namespace has its quotas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recommender.configuration.objects.admission import ReadObject, configuration_with_objects
from recommender.configuration.objects.object_reading import read_object
from recommender.configuration.reading import read_configuration
from tests.recommender.configuration.files import TARGET, entry, whole
from tests.recommender.configuration.objects.objects import SETTINGS, SHARED, each, linear, made, target

if TYPE_CHECKING:
    from recommender.configuration.objects.admission import Admission
    from recommender.configuration.objects.object_reading import RecommendationObject

FILE = read_configuration(whole(entry("dns", f"targets: [{TARGET}]")), "r.yaml")


def judged(*objects: RecommendationObject, **settings: Any) -> Admission:  # noqa: ANN401 - keys of the settings
    file = replace(FILE, objects=replace(SETTINGS, **settings))
    return configuration_with_objects(
        file, [ReadObject(found, read_object(found, SHARED, file.objects)) for found in objects]
    )


def names(admission: Admission) -> list[str]:
    return [found.policy.name for found in admission.configuration.recommendations]


def reasons(admission: Admission) -> dict[str, str]:
    return {key: refusal.reason for key, refusal in admission.refusals.items()}


def test_an_object_with_a_target_of_the_file_is_refused() -> None:
    found = judged(made("kube-system/mine", linear(target("coredns"))))
    assert names(found) == ["dns"]
    assert found.refusals["kube-system/mine"].message == (
        "Deployment kube-system/coredns is already a target of recommendation 'dns' of the administrator's file"
    )
    assert reasons(found) == {"kube-system/mine": "TargetInFile"}


def test_the_older_of_two_objects_with_one_target_counts_in_any_order() -> None:
    young = made("shop/a", linear(target("web", kind="deployments")), created="2026-02-01T00:00:00Z")
    old = made("shop/b", linear(target("web"), target("api")))
    for objects in ((young, old), (old, young)):
        found = judged(*objects)
        assert names(found) == ["dns", "shop/b"]
        assert reasons(found) == {"shop/a": "TargetTaken"}
        assert "the older object shop/b" in found.refusals["shop/a"].message


def test_a_refused_object_uses_no_target_and_no_quota() -> None:
    wrong = made("shop/a", linear(target("web"), maxStp=1))
    good = made("shop/b", linear(target("web")), created="2026-02-01T00:00:00Z")
    assert names(judged(wrong, good, max_per_namespace=1)) == ["dns", "shop/b"]


def test_the_quota_of_a_namespace_does_not_affect_others() -> None:
    many = [made(f"shop/{place}", linear(target(f"t{place}"))) for place in range(4)]
    found = judged(*many, made("team/a"), max_per_namespace=3)
    assert names(found) == ["dns", "shop/0", "shop/1", "shop/2", "team/a"]
    assert reasons(found) == {"shop/3": "QuotaExceeded"}


def test_series_count_with_the_number_of_targets_they_may_name() -> None:
    first, second = made("shop/a", each(600)), made("shop/b", each(500), created="2026-02-01T00:00:00Z")
    assert reasons(judged(first, second, max_targets_per_namespace=1000)) == {"shop/b": "QuotaExceeded"}
    assert "lower forEach.max" in judged(made("shop/a", each())).refusals["shop/a"].message


def test_all_objects_are_known_by_name_including_refused_ones() -> None:
    found = judged(made("shop/a", {}), made("shop/b"))
    assert found.configuration.object_names == frozenset({"shop/a", "shop/b"})
    assert FILE.object_names is None
