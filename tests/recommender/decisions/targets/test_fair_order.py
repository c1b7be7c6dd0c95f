"""Places are given to namespaces in turn."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recommender.decisions.record import TargetReference
from recommender.decisions.targets.fair_order import in_fair_order


def target(place: tuple[str, int]) -> TargetReference:
    return TargetReference("apps/v1", "Deployment", place[0], f"web-{place[1]}")


PLACES = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.integers(0, 30)), unique=True)


@given(PLACES, st.integers(0, 40))
def test_a_namespace_without_room_for_all_has_at_most_one_place_less_than_any_other(
    places: list[tuple[str, int]], most: int
) -> None:
    wanted = Counter(namespace for namespace, _ in places)
    got = Counter(each.namespace for each in in_fair_order(map(target, places))[:most])
    for namespace, number in wanted.items():
        if got[namespace] < number:
            assert all(others <= got[namespace] + 1 for others in got.values())


@given(PLACES)
def test_fair_order_keeps_all_targets_and_their_order_within_a_namespace(places: list[tuple[str, int]]) -> None:
    found = in_fair_order(map(target, places))
    for namespace in {namespace for namespace, _ in places}:
        assert [each for each in found if each.namespace == namespace] == [
            target(each) for each in places if each[0] == namespace
        ]
    assert len(found) == len(places)


@given(PLACES)
def test_each_namespace_has_a_place_before_any_has_the_next(places: list[tuple[str, int]]) -> None:
    seen: Counter[str] = Counter()
    rounds = []
    for each in in_fair_order(map(target, places)):
        rounds.append(seen[each.namespace])
        seen[each.namespace] += 1
    assert all(before <= after for before, after in pairwise(rounds))
