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
class Harness:
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
    harness = Harness(text=whole(ENTRY, top=TOP))
    harness.source.follow()
    assert (harness.names(), harness.changes, harness.source.current.object_names) == (["web"], [], None)
    harness.objects = {}
    harness.source.follow()
    assert harness.source.current.object_names == frozenset()


def test_objects_are_added_changed_and_removed_and_a_status_update_is_not_a_change() -> None:
    harness = Harness()
    harness.put(made())
    assert harness.names() == ["shop/web"]
    harness.put(replace(made(), status={"value": 3}))
    assert len(harness.changes) == 1
    harness.put(replace(made(spec=linear(target("api"))), generation=2))
    assert [str(each) for each in harness.source.current.recommendations[0].policy.targets] == ["Deployment shop/api"]
    harness.put(replace(made(), uid="another"))
    assert len(harness.changes) == 3
    harness.objects = {}
    harness.source.follow()
    assert harness.names() == []


def test_an_invalid_object_is_refused_and_others_are_not_affected() -> None:
    harness = Harness()
    harness.put(made("team/a"))
    harness.put(made(spec={"predictive": 7}))
    assert harness.names() == ["team/a"]
    assert harness.source.admission.refusals["shop/web"].reason == "InvalidSpec"


def test_a_changed_file_revalidates_all_objects_at_once() -> None:
    harness = Harness()
    harness.put(made())
    harness.put(made("team/a"))
    harness.text = whole(ENTRY, top=TOP)
    harness.source.check()
    assert harness.names() == ["web", "team/a"]
    harness.text = whole(top="recommendationObjects: {enabled: true, targetKinds: []}\n")
    harness.source.check()
    assert harness.names() == []


def test_disabling_objects_stops_them_at_once_and_enabling_them_brings_them_back() -> None:
    harness = Harness()
    harness.put(made())
    harness.text = whole()
    harness.source.check()
    assert (harness.names(), harness.source.current.object_names) == ([], None)
    changes = len(harness.changes)
    harness.source.follow()
    assert (harness.names(), len(harness.changes)) == ([], changes)
    harness.text = whole(top=TOP)
    harness.source.check()
    harness.source.follow()
    assert harness.names() == ["shop/web"]


def test_changes_of_a_busy_namespace_are_applied_at_a_limited_rate_and_do_not_delay_others() -> None:
    harness = Harness()
    for generation in range(100):
        harness.put(replace(made(), generation=generation))
    assert len(harness.changes) == BURST
    harness.put(made("team/a"))
    assert harness.names() == ["shop/web", "team/a"]
    harness.seconds += 10.0
    harness.source.follow()
    assert harness.source.admission.objects["shop/web"].generation == 99


def test_a_deletion_in_a_rate_limited_namespace_is_applied_at_once() -> None:
    harness = Harness()
    for generation in range(BURST + 5):
        harness.put(replace(made(), generation=generation))
    harness.objects = {}
    harness.source.follow()
    assert harness.names() == []


def test_deleting_all_objects_of_a_namespace_does_not_refill_its_burst() -> None:
    harness = Harness()
    for _ in range(100):
        harness.objects = {}
        harness.source.follow()
        harness.put(made())
    assert len(harness.changes) == 2 * BURST + 1
    harness.objects = {}
    harness.source.follow()
    harness.seconds += 100.0
    for _ in range(2):
        harness.put(made())
        harness.objects = {}
        harness.source.follow()
    assert len(harness.changes) == 2 * BURST + 5
