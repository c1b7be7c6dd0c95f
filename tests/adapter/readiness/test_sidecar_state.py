from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from adapter.foundation.service.runtime.tasks import Tasks
from adapter.readiness.limit import connection_limit
from adapter.readiness.scrape import ScrapeError
from adapter.readiness.sidecar import sidecar_answer
from adapter.readiness.sidecar_state import SidecarState
from adapter.readiness.verdict import ReadinessRules
from tests.support.waiting import until

if TYPE_CHECKING:
    import pytest

RULES = ReadinessRules("open", connection_limit(100, 0.9), stale_after_seconds=3.0)


def failing() -> float:
    raise ScrapeError("late", "the application hangs")


def metrics(state: SidecarState) -> dict[str, float]:
    families = text_string_to_metric_families(sidecar_answer(state, "/metrics").body.decode())
    samples = [sample for family in families for sample in family.samples]
    return {" ".join((sample.name, *sample.labels.values())): sample.value for sample in samples}


def test_every_path_except_livez_and_metrics_is_the_probe() -> None:
    state = SidecarState(RULES, lambda: 10.0)
    state.update(lambda: 100.0)
    statuses = {path: sidecar_answer(state, path).status for path in ("/", "/readyz", "/healthz", "/livez", "/metrics")}
    assert statuses == {"/": 503, "/readyz": 503, "/healthz": 503, "/livez": 200, "/metrics": 200}


def test_own_metrics_match_the_probe() -> None:
    state = SidecarState(RULES, lambda: 10.0)
    state.update(lambda: 99.5)
    state.update(failing)
    found = metrics(state)
    assert found["tidewatch_readiness_ready"] == 1
    assert found["tidewatch_readiness_connections"] == 99.5
    assert found["tidewatch_readiness_limit"] == 100
    assert found["tidewatch_readiness_resume_below"] == 90
    assert found["tidewatch_readiness_reads_total ok"] == 1
    assert found["tidewatch_readiness_reads_total late"] == 1


def test_an_unknown_number_of_connections_is_absent() -> None:
    assert "tidewatch_readiness_connections" not in metrics(SidecarState(RULES))


def test_a_process_that_ends_is_not_ready() -> None:
    state = SidecarState(RULES)
    state.update(lambda: 1.0)
    state.stop()
    answer = sidecar_answer(state, "/")
    assert (answer.status, answer.body) == (503, b"not ready: shutting down\n")


def test_states_are_logged_only_when_they_change(caplog: pytest.LogCaptureFixture) -> None:
    state = SidecarState(RULES)
    with caplog.at_level("INFO"):
        for connections in (99.0, 100.0, 100.0, 95.0, 89.0, 89.0):
            state.update(lambda connections=connections: connections)  # type: ignore[misc]
        for _ in range(3):
            state.update(failing)
        state.update(lambda: 1.0)
    assert [record.getMessage() for record in caplog.records] == [
        "the pod is full",
        "the pod has room again",
        "the metric cannot be read (late)",
        "the metric can be read again",
    ]


def test_a_fault_of_the_sidecar_itself_leaves_the_pod_ready_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    state = SidecarState(RULES)

    def faulty() -> None:
        raise RuntimeError("a fault")

    tasks = Tasks(state)
    with caplog.at_level("CRITICAL"):
        tasks.periodic("metric", faulty, every_seconds=1.0, deadline_seconds=1.0)
        until(lambda: metrics(state)["tidewatch_readiness_reads_total internal_error"])
        assert tasks.stop(10.0) == ()
    answer = sidecar_answer(state, "/")
    assert answer.status == 200
    assert b"the task metric failed" in answer.body
