"""Only the leader writes statuses, only if they change, at a limited rate, and without fighting over them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.sources.kubernetes.errors import ConflictError, ForbiddenError, NotFoundError, ServerError
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.configuration.objects.admission import Admission
from recommender.configuration.objects.object_reading import ObjectRefusal, RecommendationObject
from recommender.configuration.recommender_configuration import Configuration
from recommender.decisions.publication import Publication
from recommender.running.objects.object_watch import recommendation_store
from recommender.running.objects.status_writer import CALM_SECONDS, MANAGER, StatusWriter
from tests.recommender.configuration.objects.objects import accepted, linear, made
from tests.recommender.running.objects.test_crowded_objects import RESOURCE, form
from tests.recommender.running.objects.test_object_status import NOW, RECORD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.record import Record


@dataclass
class Harness:
    """An API server, a clock, and the objects of a leader."""

    seconds: float = 1000.0
    objects: dict[str, RecommendationObject] = field(default_factory=lambda: {"shop/web": made()})
    refusals: dict[str, ObjectRefusal] = field(default_factory=dict)
    fails: Exception | None = None
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known: dict[str, RecommendationObject] | None = dict(self.objects)
        clock = Clock(monotonic=lambda: self.seconds, wall=lambda: NOW + self.seconds - 1000.0)
        self.store = recommendation_store(lambda: RESOURCE, 1, lambda: None)
        fence = Fence(1.0, lambda _: True)
        self.writer = StatusWriter(self, fence, self._admission, lambda: self.known, self.store, clock=clock)

    def apply(self, path: str, document: Mapping[str, Any], manager: str, fence: Fence) -> dict[str, Any]:
        assert manager == MANAGER
        assert fence.seconds == 1.0
        self.calls.append((path, document))
        if self.fails is not None:
            raise self.fails
        return {}

    def _admission(self) -> Admission:
        counting = tuple(accepted(linear(), key) for key in self.objects if key not in self.refusals)
        return Admission(Configuration(recommendations=counting), self.objects, self.refusals)

    def poll(self, *records: Record, after: float = 10.0, leads: bool = True) -> int:
        """Return how many statuses are written after a poll with these records."""
        self.seconds += after
        before = len(self.calls)
        self.writer.publish(Publication(leads=leads, records=records))
        self.writer.write_due()
        return len(self.calls) - before


def error(kind: type[Exception], code: int) -> Exception:
    return kind("refused", code)


def test_a_status_is_applied_once_and_only_to_the_object_with_the_same_uid() -> None:
    harness = Harness()
    assert [harness.poll(RECORD), harness.poll(RECORD), harness.poll(RECORD)] == [1, 0, 0]
    path, document = harness.calls[0]
    assert path == "/apis/tidewatch.io/v1alpha1/namespaces/shop/recommendations/web/status"
    assert document["metadata"] == {"name": "web", "namespace": "shop", "uid": "uid-shop/web"}
    assert document["status"]["value"] == 3


def test_a_changed_value_is_written_at_once_and_a_changed_message_later() -> None:
    harness = Harness()
    harness.poll(RECORD)
    assert harness.poll(replace(RECORD, replicas=4), after=1.0) == 1
    text = replace(RECORD, replicas=4, message="more")
    assert harness.poll(text, after=1.0) == 0
    assert harness.poll(text, after=CALM_SECONDS) == 1


def test_a_follower_writes_no_status_and_a_new_leader_writes_only_what_differs() -> None:
    harness = Harness()
    assert harness.poll(RECORD, leads=False) == 0
    harness.poll(RECORD)
    status = harness.calls[0][1]["status"]
    harness.known = {"shop/web": replace(made(), status=status)}
    assert harness.poll(leads=False) == 0
    assert harness.poll(RECORD) == 0


def test_what_others_write_into_a_status_stays_until_the_record_changes() -> None:
    harness = Harness()
    harness.poll(RECORD)
    harness.known = {"shop/web": replace(made(), status={"value": 99})}
    assert harness.poll(RECORD) == 0
    assert harness.poll(replace(RECORD, replicas=4)) == 1


@pytest.mark.parametrize(
    "failure",
    [error(NotFoundError, 404), error(ConflictError, 409), error(ForbiddenError, 403), error(ServerError, 500)],
)
def test_a_failed_write_is_retried_later_and_does_not_block_others(failure: Exception) -> None:
    harness = Harness(objects={"shop/web": made(), "team/a": made("team/a")})
    harness.fails = failure
    records = (RECORD, replace(RECORD, name="team/a"))
    assert harness.poll(*records) == 2
    assert harness.poll(*records, after=5.0) == 0
    harness.fails = None
    assert harness.poll(*records, after=60.0) == 2
    assert harness.poll(*records) == 0


def test_many_statuses_are_written_at_a_limited_rate_until_all_are_written() -> None:
    objects = {f"n{place}/web": made(f"n{place}/web") for place in range(100)}
    harness = Harness(objects=objects)
    records = [replace(RECORD, name=key) for key in objects]
    written = [harness.poll(*records, after=1.0) for _ in range(5)]
    assert written == [40, 20, 20, 20, 0]


def test_a_namespace_with_many_objects_does_not_delay_statuses_of_another() -> None:
    objects = {f"many/web-{place}": made(f"many/web-{place}") for place in range(200)} | {"shop/web": made()}
    harness = Harness(objects=objects)
    harness.poll(*(replace(RECORD, name=key) for key in objects))
    assert "shop" in {document["metadata"]["namespace"] for _, document in harness.calls}


def test_a_deleted_or_recreated_object_gets_no_status() -> None:
    harness = Harness()
    harness.known = {}
    assert harness.poll(RECORD) == 0
    harness.known = {"shop/web": replace(made(), uid="other")}
    assert harness.poll(RECORD) == 0
    harness.known = None
    assert harness.poll(RECORD) == 0


@pytest.mark.parametrize("failure", [None, error(ConflictError, 409)], ids=["written", "lost"])
def test_a_recreated_object_does_not_wait_for_the_failed_write_of_its_predecessor(
    failure: Exception | None,
) -> None:
    harness = Harness()
    harness.fails = failure
    harness.poll(RECORD)
    harness.fails = None
    anew = replace(made(), uid="another")
    harness.known = harness.objects = {"shop/web": anew}
    assert harness.poll(RECORD, after=1.0) == 1
    assert harness.calls[-1][1]["metadata"]["uid"] == "another"


def test_after_a_configuration_change_refusals_are_written_but_old_records_are_not() -> None:
    harness = Harness(objects={"shop/web": made(), "team/a": made("team/a")})
    harness.writer.publish(Publication(leads=True, records=(RECORD,)))
    harness.refusals["team/a"] = ObjectRefusal("TargetTaken", "it is taken")
    harness.writer.reconfigured()
    harness.writer.write_due()
    assert [document["metadata"]["name"] for _, document in harness.calls] == ["a"]


def test_objects_beyond_the_quota_get_their_status_once_in_turns_and_after_all_others() -> None:
    harness = Harness()
    for place in range(50):
        harness.store.put(form(f"flood/{place:02}"))
        harness.store.put(form(f"team/{place:02}" if place < 2 else "team/00"))
    harness.poll(RECORD)
    paths = [path.split("/namespaces/")[1] for path, _ in harness.calls]
    assert paths[:3] == [f"{each}/status" for each in _PATHS]
    assert len(paths) == 40
    for _ in range(5):
        harness.seconds += 1.0
        harness.writer.write_due()
    statuses = {document["metadata"]["name"]: document["status"] for _, document in harness.calls[3:]}
    assert len(harness.calls) == 1 + 49 + 1
    refused = statuses["49"]["conditions"][-1]
    assert (refused["type"], refused["status"], refused["reason"]) == ("Refused", "True", "QuotaExceeded")
    assert "recommendationObjects.maxPerNamespace" in refused["message"]


_PATHS = ("shop/recommendations/web", "flood/recommendations/01", "team/recommendations/01")


def test_an_object_beyond_the_quota_whose_status_cannot_be_written_is_tried_again_later() -> None:
    harness = Harness(objects={}, fails=error(ServerError, 500))
    harness.store.put(form("flood/a"))
    harness.store.put(form("flood/b"))
    assert [harness.poll(), harness.poll(after=1.0)] == [1, 0]
    harness.fails = None
    assert [harness.poll(after=30.0), harness.poll(after=30.0)] == [1, 0]


def test_a_follower_writes_no_status_to_objects_beyond_the_quota() -> None:
    harness = Harness(objects={})
    harness.store.put(form("flood/a"))
    harness.store.put(form("flood/b"))
    assert harness.poll(leads=False) == 0
