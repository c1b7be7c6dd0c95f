"""The benchmark on a real control plane counts and judges requests; `make e2e` runs its parts in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.control_plane import discovered, main
from benchmarks.control_plane_audit import HPA_CONTROLLER, asked_by_adapter, asked_by_hpas
from benchmarks.control_plane_discovery import freshness
from benchmarks.control_plane_fleet import TARGET, fleet
from benchmarks.control_plane_stage import NotPreparedError, enter_network
from tests.e2e.controlplane.audit import AuditEvent
from tests.support.questions import answers_by_question

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ENDED = BEGAN + timedelta(minutes=1)
ACCOUNT = "system:serviceaccount:adapter:tidewatch-adapter"


def event(second: float, verb: str = "get", milliseconds: float = 5.0, **fields: Any) -> AuditEvent:  # noqa: ANN401 - of an event
    start = BEGAN + timedelta(seconds=second)
    values: dict[str, Any] = {
        "stage": "ResponseComplete",
        "user": ACCOUNT,
        "groups": (),
        "verb": verb,
        "uri": "/",
        "group": "",
        "resource": "",
        "namespace": "",
        "code": 200,
        "start": start,
        "end": start + timedelta(milliseconds=milliseconds),
    }
    return AuditEvent(**(values | fields))


def hpa_event(second: float, app: str = "a", **fields: Any) -> AuditEvent:  # noqa: ANN401 - of an event
    uri = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/%2A/m?labelSelector=app%3D{app}"
    own = {"user": HPA_CONTROLLER, "group": "custom.metrics.k8s.io", "namespace": "shop", "uri": uri}
    return event(second, **(own | fields))


def test_requests_of_hpas_are_counted_by_answer_and_by_hpa() -> None:
    events = [hpa_event(1), hpa_event(16), hpa_event(2, "b"), hpa_event(3, "c", code=503)]
    asked = asked_by_hpas(events, BEGAN, ENDED)
    assert (asked.requests, asked.errors) == (4, 1)
    assert answers_by_question(events, BEGAN, ENDED) == {
        ("shop", "labelSelector=app%3Da"): 2,
        ("shop", "labelSelector=app%3Db"): 1,
    }


def test_a_question_of_the_audit_log_is_that_of_its_app() -> None:
    (app,) = fleet(1, 1, "shop")
    asked = answers_by_question([hpa_event(1, app.name, namespace=app.namespace)], BEGAN, ENDED)
    assert list(asked) == [app.question]


def test_latencies_are_those_of_good_answers() -> None:
    slow_and_bad = hpa_event(5, milliseconds=5000, code=500)
    asked = asked_by_hpas([*(hpa_event(n, milliseconds=n) for n in range(1, 51)), slow_and_bad], BEGAN, ENDED)
    assert (asked.p50_ms, asked.p99_ms, asked.max_ms) == (25.0, 50.0, 50.0)


def test_without_a_good_answer_there_is_no_latency() -> None:
    asked = asked_by_hpas([hpa_event(1, code=404)], BEGAN, ENDED)
    assert (asked.p50_ms, asked.p99_ms, asked.max_ms, asked.errors) == (None, None, None, 1)


@pytest.mark.parametrize(
    "other",
    [
        hpa_event(-1),
        hpa_event(60),
        hpa_event(1, user="system:admin"),
        hpa_event(1, group="external.metrics.k8s.io"),
    ],
    ids=["before", "after", "somebody else's", "of another API"],
)
def test_other_requests_do_not_count_as_requests_of_hpas(other: AuditEvent) -> None:
    assert asked_by_hpas([other], BEGAN, ENDED).requests == 0


def kinds(events: Iterable[AuditEvent]) -> tuple[int, int, int, int]:
    found = asked_by_adapter(list(events), ACCOUNT, BEGAN, ENDED)
    counts = len(found.lists), len(found.watches), found.reviews, len(found.others)
    assert found.requests == sum(counts)
    return counts


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        ([event(1, "list", resource="pods")], (1, 0, 0, 0)),
        ([event(1, "create", resource="subjectaccessreviews", code=201)], (0, 0, 1, 0)),
        ([event(1, "create", resource="tokenreviews", code=201)], (0, 0, 1, 0)),
        ([event(1, "get", resource="secrets"), event(1, "patch", resource="secrets")], (0, 0, 0, 2)),
        # A watch has a line when it begins and one when it ends; that of one that began before is none of ours.
        ([event(1, "watch", stage="ResponseStarted"), event(1, "watch")], (0, 1, 0, 0)),
        ([event(1, "watch")], (0, 0, 0, 0)),
        ([event(1, "watch", code=403)], (0, 1, 0, 0)),
        ([event(1, "list", user=HPA_CONTROLLER)], (0, 0, 0, 0)),
        ([event(-1, "list"), event(60, "list")], (0, 0, 0, 0)),
    ],
)
def test_the_adapters_requests_are_counted_by_kind(events: list[AuditEvent], counts: tuple[int, int, int, int]) -> None:
    assert kinds(events) == counts


def test_every_app_has_its_own_value_which_kubernetes_writes_in_full_and_which_never_scales() -> None:
    apps = fleet(1000, 50, "many")
    assert len({app.value for app in apps}) == len({app.question for app in apps}) == 1000
    assert len({app.namespace for app in apps}) == 50
    assert all(0 < app.value <= TARGET and app.value % 10 for app in apps)


def test_freshness_is_reported_for_each_group_version() -> None:
    versions = [{"version": "v1beta2", "freshness": "Current"}, {"version": "v1beta1", "freshness": "Stale"}]
    document = {"items": [{"metadata": {"name": "custom.metrics.k8s.io"}, "versions": versions}]}
    assert freshness(document) == {"custom.metrics.k8s.io/v1beta2": "Current", "custom.metrics.k8s.io/v1beta1": "Stale"}


def test_an_incomplete_answer_is_an_error_without_a_latency() -> None:
    sizes = iter([None, 70, None, 90])
    row = discovered("list", 5, lambda: next(sizes), 4)
    assert (row["requests"], row["errors"], row["bytes"]) == (4, 2, 90)
    assert discovered("list", 5, lambda: None, 3)["p50_ms"] is None


@pytest.mark.parametrize("arguments", [["--hpas", "0"], ["--seconds", "1"], ["--metrics", "x"], ["-o", "xml"]])
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2


def test_programs_that_were_not_built_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NotPreparedError, match="run `make e2e`"):
        enter_network()
