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
def test_a_namespace_without_room_for_all_has_no_less_than_another_but_for_one(
    places: list[tuple[str, int]], most: int
) -> None:
    wanted = Counter(namespace for namespace, _ in places)
    got = Counter(each.namespace for each in in_fair_order(map(target, places))[:most])
    for namespace, number in wanted.items():
        if got[namespace] < number:
            assert all(others <= got[namespace] + 1 for others in got.values())


@given(PLACES)
def test_all_targets_are_there_and_those_of_a_namespace_keep_their_order(places: list[tuple[str, int]]) -> None:
    found = in_fair_order(map(target, places))
    for namespace in {namespace for namespace, _ in places}:
        assert [each for each in found if each.namespace == namespace] == [
            target(each) for each in places if each[0] == namespace
        ]
    assert len(found) == len(places)


@given(PLACES)
def test_rounds_follow_each_other(places: list[tuple[str, int]]) -> None:
    seen: Counter[str] = Counter()
    rounds = []
    for each in in_fair_order(map(target, places)):
        rounds.append(seen[each.namespace])
        seen[each.namespace] += 1
    assert all(before <= after for before, after in pairwise(rounds))
