"""The objects are unknown before the first list, and there are none if the kind is not installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.sources.kubernetes.errors import ForbiddenError, NotFoundError
from recommender.running.objects.object_watch import known_objects
from tests.recommender.configuration.objects.objects import made

if TYPE_CHECKING:
    from recommender.configuration.objects.object_reading import RecommendationObject


@dataclass
class Reflector:
    """A watch in its state at one moment."""

    synced: bool = True
    began_empty: bool = False
    refusal: Exception | None = None


@dataclass
class Store:
    """The store in which the watch keeps the objects."""

    known: dict[tuple[str, str], RecommendationObject] = field(default_factory=dict)


def known(reflector: Reflector, *objects: RecommendationObject) -> set[str] | None:
    store = Store({(each.namespace, each.name): each for each in objects})
    found = known_objects(reflector, store)  # type: ignore[arg-type]
    return None if found is None else set(found)


def test_objects_are_indexed_by_namespace_and_name() -> None:
    assert known(Reflector(), made("shop/a"), made("team/a")) == {"shop/a", "team/a"}


def test_objects_are_unknown_before_the_first_list_and_while_an_empty_list_is_doubted() -> None:
    assert known(Reflector(synced=False)) is None
    assert known(Reflector(began_empty=True)) is None


def test_there_are_no_objects_if_the_kind_is_not_installed() -> None:
    assert known(Reflector(synced=False, refusal=NotFoundError("no such kind", 404))) == set()


def test_known_objects_are_kept_without_the_right_to_watch() -> None:
    refusal = ForbiddenError("forbidden", 403)
    assert known(Reflector(refusal=refusal), made("shop/a")) == {"shop/a"}
    assert known(Reflector(synced=False, refusal=refusal)) is None
