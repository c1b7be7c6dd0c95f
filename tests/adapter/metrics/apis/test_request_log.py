from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.apis.request_log import LONGEST_CHARACTERS, LoggedRequest, RequestLog, steps_of
from adapter.metrics.readings.answers import ByName
from tests.adapter.metrics.apis.fakes import AskedObjects, answer
from tests.adapter.metrics.apis.handler_harness import C2, NAMESPACE_RPS

if TYPE_CHECKING:
    from tests.adapter.metrics.apis.fakes import Server

C = "custom.metrics.k8s.io"


@dataclass
class Wall:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def request(metric: str = "rps", *, namespace: str = "shop", kind: str = "pods", caller: str = "hpa") -> LoggedRequest:
    return LoggedRequest(C, kind, namespace, metric, caller)


def test_callers_times_and_counts_are_remembered_by_metric_and_namespace() -> None:
    wall = Wall()
    log = RequestLog(wall=wall)
    log.note(request())
    wall.now += 15
    log.note(request())
    log.note(request(caller="alice"))
    log.note(request(namespace="other", caller="mallory"))
    log.note(request("latency", caller="mallory"))
    wall.now += 1
    found = log.of(C, "shop", "rps")

    assert [(one.name, one.number, wall.now - one.last) for one in found] == [("hpa", 2, 1.0), ("alice", 1, 1.0)]
    assert [step.detail for step in steps_of(found, wall.now)] == [
        "hpa asked last 1 s ago, 2 times since 2027-01-15T08:00:00Z",
        "alice asked last 1 s ago, once",
    ]


def test_spellings_of_a_kind_are_counted_together_and_other_kinds_are_not_counted() -> None:
    log = RequestLog(wall=Wall())
    for kind in ("pods", "pod", "services"):
        log.note(request(kind=kind))
    (found,) = log.of(C, "shop", "rps", lambda kind: kind.startswith("pod"))

    assert found.number == 2


@pytest.mark.parametrize("question", ["metric=namespaces/rps&namespace=shop", "metric=rps&object=namespace/shop"])
@pytest.mark.parametrize("path", ["namespaces/{}/metrics/rps", "namespace/{}/rps"])
def test_callers_of_another_namespaces_metric_are_not_listed(server: Server, path: str, question: str) -> None:
    for name in ("shop", "other"):
        server.readings.answers[AskedObjects(NAMESPACE_RPS, None, ByName(name), EVERYTHING)] = answer((name, 1))
    server.get(f"{C2}/{path.format('other')}")
    server.routed("GET", f"/debug/explain?{question}")
    server.get(f"{C2}/{path.format('shop')}")
    server.routed("GET", f"/debug/explain?{question}")
    before, after = ([note.detail for note in notes] for _, notes in server.readings.explained)

    assert before == ["no caller has asked this process for it, as far back as it remembers"]
    assert len(after) == 1
    assert after[0].endswith("once")


def test_the_number_of_requests_is_bounded_and_repeated_ones_are_kept() -> None:
    wall = Wall()
    log = RequestLog(most=100, wall=wall)
    log.note(request("kept"))
    for number in range(1000):
        wall.now += 1
        log.note(request(f"m{number}"))
        log.note(request("kept"))

    assert len(log) == 100
    assert log.of(C, "shop", "kept")[0].number == 1001
    assert log.of(C, "shop", "m999")
    assert not log.of(C, "shop", "m0")


def test_requests_are_dropped_even_if_all_are_repeated() -> None:
    wall = Wall()
    log = RequestLog(most=50, wall=wall)
    for _ in range(3):
        wall.now += 1
        for number in range(200):
            log.note(request(f"m{number}"))

    assert len(log) == 50


@pytest.mark.parametrize("part", ["metric", "caller", "namespace", "kind"])
def test_requests_with_overlong_parts_are_not_remembered(part: str) -> None:
    log = RequestLog()
    long = {"metric": "rps", part: "x" * LONGEST_CHARACTERS}
    log.note(request(**long))

    assert len(log) == 0


def test_only_the_last_few_callers_are_listed_and_their_absence_is_stated() -> None:
    wall = Wall()
    log = RequestLog(wall=wall)
    for number in range(7):
        log.note(request(caller=f"user-{number}"))

    assert [step.detail for step in steps_of(log.of(C, "shop", "rps"), wall.now)][-1] == "and 2 more before"
    assert [step.detail for step in steps_of([], wall.now)] == [
        "no caller has asked this process for it, as far back as it remembers"
    ]
