"""The configuration in force is the file with the objects, which change at a limited rate for each namespace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.running.objects.object_configuration import BURST, ObjectConfigurations
from tests.recommender.configuration.files import entry, whole
from tests.recommender.configuration.objects.objects import linear, made, target

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.configuration.objects.object_reading import RecommendationObject
    from recommender.configuration.recommender_configuration import Configuration

TOP = "recommendationObjects: {enabled: true}\n"
ENTRY = entry("web", "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]")


@dataclass
class World:
    """A file, objects and a clock."""

    seconds: float = 0.0
    objects: dict[str, RecommendationObject] | None = None
    text: str = whole(top=TOP)
    changes: list[Configuration] = field(default_factory=list)
    _on_file: Callable[[Configuration], None] = lambda _: None

    def __post_init__(self) -> None:
        self.source = ObjectConfigurations(self, Clock(monotonic=lambda: self.seconds, wall=lambda: self.seconds))
        self.source.connect(lambda: self.objects)
        self.source.on_change(self.changes.append)

    @property
    def current(self) -> Configuration:
        return read_configuration(self.text, "r.yaml")

    def on_change(self, on_change: Callable[[Configuration], None]) -> None:
        self._on_file = on_change

    def check(self) -> None:
        self._on_file(self.current)

    def names(self) -> list[str]:
        return [each.policy.name for each in self.source.current.recommendations]

    def put(self, found: RecommendationObject) -> None:
        self.objects = {**(self.objects or {}), found.key: found}
        self.source.follow()


def test_only_the_file_counts_while_the_objects_are_unknown() -> None:
    world = World(text=whole(ENTRY, top=TOP))
    world.source.follow()
    assert (world.names(), world.changes, world.source.current.object_names) == (["web"], [], None)
    world.objects = {}
    world.source.follow()
    assert world.source.current.object_names == frozenset()


def test_objects_are_added_changed_and_removed_and_a_status_update_is_not_a_change() -> None:
    world = World()
    world.put(made())
    assert world.names() == ["shop/web"]
    world.put(replace(made(), status={"value": 3}))
    assert len(world.changes) == 1
    world.put(replace(made(spec=linear(target("api"))), generation=2))
    assert [str(each) for each in world.source.current.recommendations[0].policy.targets] == ["Deployment shop/api"]
    world.put(replace(made(), uid="another"))
    assert len(world.changes) == 3
    world.objects = {}
    world.source.follow()
    assert world.names() == []


def test_an_invalid_object_is_refused_and_others_are_not_affected() -> None:
    world = World()
    world.put(made("team/a"))
    world.put(made(spec={"predictive": 7}))
    assert world.names() == ["team/a"]
    assert world.source.admission.refusals["shop/web"].reason == "InvalidSpec"


def test_a_changed_file_revalidates_all_objects_at_once() -> None:
    world = World()
    world.put(made())
    world.put(made("team/a"))
    world.text = whole(ENTRY, top=TOP)
    world.source.check()
    assert world.names() == ["web", "team/a"]
    world.text = whole(top="recommendationObjects: {enabled: true, targetKinds: []}\n")
    world.source.check()
    assert world.names() == []


def test_disabling_objects_stops_them_at_once_and_enabling_them_brings_them_back() -> None:
    world = World()
    world.put(made())
    world.text = whole()
    world.source.check()
    assert (world.names(), world.source.current.object_names) == ([], None)
    changes = len(world.changes)
    world.source.follow()
    assert (world.names(), len(world.changes)) == ([], changes)
    world.text = whole(top=TOP)
    world.source.check()
    world.source.follow()
    assert world.names() == ["shop/web"]


def test_changes_of_a_busy_namespace_are_applied_at_a_limited_rate_and_do_not_delay_others() -> None:
    world = World()
    for generation in range(100):
        world.put(replace(made(), generation=generation))
    assert len(world.changes) == BURST
    world.put(made("team/a"))
    assert world.names() == ["shop/web", "team/a"]
    world.seconds += 10.0
    world.source.follow()
    assert world.source.admission.objects["shop/web"].generation == 99


def test_a_deletion_in_a_rate_limited_namespace_is_applied_at_once() -> None:
    world = World()
    for generation in range(BURST + 5):
        world.put(replace(made(), generation=generation))
    world.objects = {}
    world.source.follow()
    assert world.names() == []


def test_deleting_all_objects_of_a_namespace_does_not_refill_its_burst() -> None:
    world = World()
    for _ in range(100):
        world.objects = {}
        world.source.follow()
        world.put(made())
    assert len(world.changes) == 2 * BURST + 1
    world.objects = {}
    world.source.follow()
    world.seconds += 100.0
    for _ in range(2):
        world.put(made())
        world.objects = {}
        world.source.follow()
    assert len(world.changes) == 2 * BURST + 5
