from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.sources.kubernetes.errors import AdmissionError, DeadlineError
from adapter.foundation.time.clock import Clock
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.outputs.event_rules import TargetEvent, event_document, event_of_scale_call, events_of_record
from recommender.outputs.events import EventWriter
from recommender.outputs.pending_writes import PendingWrite, Resizing
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.decisions.harness import sized
from tests.support.apiserver_kinds import EVENTS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
EVENT = TargetEvent(WEB, "Scaled", "recommendation web scaled this object from 3 to 5 replicas")
RECORD = Record(
    name="web",
    type="proportional",
    time=1.0,
    status=Status.OK,
    message="linear/nodes: ceil(80 / 16)",
    replicas=5,
    targets=(TargetOutcome(WEB, 3, TargetAction.METRIC, recommended_replicas=5),),
)


class Harness:
    def __init__(self) -> None:
        self.now = 0.0
        self.objects = ObjectStore()
        self.counted: list[str] = []
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        self.writer = EventWriter(
            Direct(self.objects, self._before),
            lambda target: f"uid-of-{target.name}",
            self.counted.append,
            clock=Clock(lambda: self.now, lambda: 1767323045.0 + self.now),
        )

    def _before(self, method: str, path: str) -> None:
        self.before(method, path)

    def add(self, *events: TargetEvent) -> None:
        for event in events:
            self.writer.add(event)
        self.writer.flush()

    @property
    def written(self) -> list[dict[str, Any]]:
        return self.objects.listed(EVENTS)


def numbered(count: int) -> list[TargetEvent]:
    return [replace(EVENT, message=f"change {number}") for number in range(count)]


def test_an_event_is_written_where_kubectl_describe_finds_it() -> None:
    harness = Harness()
    harness.add(EVENT)
    (written,) = harness.written
    metadata = written.pop("metadata")
    assert metadata["namespace"] == "shop"
    assert metadata["name"].startswith("web.")
    assert written == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "shop",
            "name": "web",
            "uid": "uid-of-web",
        },
        "reason": "Scaled",
        "message": "recommendation web scaled this object from 3 to 5 replicas",
        "type": "Normal",
        "source": {"component": "tidewatch-recommender"},
        "reportingComponent": "tidewatch-recommender",
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 1,
    }


def test_the_event_of_an_attempt_has_the_uid_of_the_object_that_was_read() -> None:
    harness = Harness()
    resizing = Resizing((), 0.1, in_place=True, up=True, down=True, managers=())
    writes = (PendingWrite("web", WEB, 5, 60.0), PendingWrite("web", WEB, 0, 60.0, resizing=resizing))
    for write, result in ((writes[0], ScaleResult.OK), (writes[1], ScaleResult.OK), (writes[1], ScaleResult.REFUSED)):
        event = event_of_scale_call(ScaleOutcome(write, result, 3, uid="of-the-answer"))
        assert event is not None
        harness.add(event)
        # The same event of a decision is a repetition, although that does not know the UID.
        harness.add(replace(event, uid=""))
    assert [each["involvedObject"]["uid"] for each in harness.written] == ["of-the-answer"] * 3


@pytest.mark.parametrize(
    "event",
    [
        replace(EVENT, target=replace(WEB, namespace="")),
        replace(EVENT, message="x" * 5000),
        replace(EVENT, target=replace(WEB, name="w" * 253)),
        replace(EVENT, target=replace(WEB, name="system:node")),
        replace(EVENT, target=replace(WEB, name="a.-b")),
        replace(EVENT, target=replace(WEB, name=":")),
    ],
    ids=["no-namespace", "long-message", "long-name", "odd-name", "dots", "no-name"],
)
def test_every_event_is_accepted_by_kubernetes(event: TargetEvent) -> None:
    harness = Harness()
    harness.add(event)
    assert harness.counted == ["created"]


def test_the_same_event_is_not_repeated_within_ten_minutes() -> None:
    harness = Harness()
    for second in range(0, 1200, 10):
        harness.now = float(second)
        harness.add(EVENT)
    assert len(harness.written) == 2
    assert harness.counted.count("suppressed") == 118


def test_events_are_written_at_a_limited_rate() -> None:
    harness = Harness()
    harness.add(*numbered(20))
    written = [len(harness.written)]
    for second in range(1, 5):
        harness.now = float(second)
        harness.writer.flush()
        written.append(len(harness.written))
    assert written == [5, 10, 15, 20, 20]


def test_events_that_exceed_the_queue_are_dropped() -> None:
    harness = Harness()
    harness.add(*numbered(600))
    assert harness.counted.count("dropped") == 100


def test_missing_rights_are_logged_once_per_namespace(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    harness.objects.deny("create", "events")
    other = replace(EVENT, target=replace(WEB, namespace="other"))
    harness.add(EVENT, *numbered(3), other, other)
    assert harness.counted == ["forbidden"] * 6
    assert [one.levelno for one in caplog.records] == [logging.WARNING] * 2
    harness.now = 601.0
    harness.add(EVENT)
    assert len(caplog.records) == 2
    harness.objects.denied.clear()
    harness.now = 1300.0
    harness.add(EVENT)
    assert len(harness.written) == 1


def test_namespaces_that_refused_an_event_are_forgotten_after_a_while() -> None:
    harness = Harness()
    harness.objects.deny("create", "events")
    for number in range(100):
        harness.now = 60.0 * number
        harness.add(replace(EVENT, target=replace(WEB, namespace=f"preview-{number}")))
    assert harness.counted == ["forbidden"] * 100
    assert len(harness.writer._forbidden_until) == 10


def test_a_namespace_that_admits_no_events_does_not_use_up_the_rate_of_others(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    sent: list[str] = []

    def deny(_method: str, path: str) -> None:
        sent.append(path)
        raise AdmissionError("403 Forbidden: exceeded quota: objects", 403)

    harness.before = deny
    harness.add(*numbered(5))
    assert (harness.counted, len(sent)) == (["forbidden"] * 5, 1)
    assert caplog.messages == ["events are not admitted in namespace shop"]


def test_an_event_that_could_not_be_sent_does_not_affect_others() -> None:
    harness = Harness()
    failures = [DeadlineError("no answer")]

    def fail(_method: str, _path: str) -> None:
        if failures:
            raise failures.pop()

    harness.before = fail
    harness.add(EVENT, *numbered(2))
    assert harness.counted == ["error", "created", "created"]
    harness.now = 10.0
    harness.add(EVENT)
    assert harness.counted[-1] == "created", "it was not written, so it is no repetition"


def test_a_published_value_that_changes_has_an_event() -> None:
    (event,) = events_of_record(sized(RECORD, 3), RECORD)
    assert event == TargetEvent(
        WEB,
        "RecommendationChanged",
        "recommendation web: from 3 to 5 replicas: linear/nodes: ceil(80 / 16)",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, RECORD),
        (RECORD, RECORD),
        (sized(RECORD, None), RECORD),
        (RECORD, replace(sized(RECORD, None), status=Status.STALE)),
        (
            sized(RECORD, 3),
            replace(RECORD, targets=(TargetOutcome(WEB, 3, TargetAction.SCALE, recommended_replicas=5),)),
        ),
    ],
    ids=["first", "equal", "from-no-value", "to-no-value", "scale-call"],
)
def test_other_decisions_have_no_event(before: Record | None, after: Record) -> None:
    assert events_of_record(before, after) == ()


def test_a_refusal_has_a_warning_that_names_the_owner() -> None:
    reason = "HorizontalPodAutoscaler shop/web scales it already"
    refused = TargetOutcome(WEB, 3, TargetAction.REFUSED, "HorizontalPodAutoscaler shop/web", reason, 5)
    (event,) = events_of_record(None, replace(RECORD, targets=(refused,)))
    assert event.is_warning
    assert event.reason == "ScaleRefused"
    assert event.message == (
        "recommendation web: not scaled to 5 replicas: HorizontalPodAutoscaler shop/web scales it already"
    )
    assert event_document(event, "", 1.0, "x")["type"] == "Warning"


def test_a_refused_resize_has_the_same_warning_from_the_writer_and_from_the_record() -> None:
    reason = "VerticalPodAutoscaler shop/web writes its requests: set its updateMode to Off, or remove resize"
    refused = TargetOutcome(WEB, None, TargetAction.REFUSED, "VerticalPodAutoscaler shop/web", reason)
    (event,) = events_of_record(None, replace(sized(RECORD, None), targets=(refused,)))
    assert event == TargetEvent(WEB, "ResizeRefused", f"recommendation web: not resized: {reason}", is_warning=True)
    resizing = Resizing((), 0.1, in_place=True, up=True, down=True, managers=())
    write = PendingWrite("web", WEB, 0, 60.0, "why", resizing=resizing)
    assert event_of_scale_call(ScaleOutcome(write, ScaleResult.REFUSED, message=reason)) == event


def test_a_scale_call_that_changed_nothing_has_no_event() -> None:
    write = PendingWrite("web", WEB, 5, 60.0, "linear/nodes: ceil(80 / 16)")
    assert event_of_scale_call(ScaleOutcome(write, ScaleResult.UNCHANGED, 5)) is None


@pytest.mark.parametrize(
    ("stored", "change"),
    [
        (5, "from 3 to 5 replicas"),
        (None, "from 3 to 5 replicas"),
        (4, "from 3 to 4 replicas instead of the 5 that were written"),
        (1, "from 3 to 1 replica instead of the 5 that were written"),
    ],
)
def test_the_event_of_a_scale_call_states_the_size_that_was_stored(stored: int | None, change: str) -> None:
    """An admission webhook may change the size that is written."""
    write = PendingWrite("web", WEB, 5, 60.0, "linear/nodes: ceil(80 / 16)")
    event = event_of_scale_call(ScaleOutcome(write, ScaleResult.OK, 3, stored=stored))
    assert event == TargetEvent(WEB, "Scaled", f"recommendation web: {change}: linear/nodes: ceil(80 / 16)")
