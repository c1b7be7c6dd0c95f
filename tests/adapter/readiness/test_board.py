from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from adapter.foundation.service.runtime.tasks import Tasks
from adapter.readiness.board import ReadinessBoard
from adapter.readiness.limit import connection_limit
from adapter.readiness.scrape import ScrapeError
from adapter.readiness.sidecar import sidecar_answer
from adapter.readiness.verdict import ReadinessRules
from tests.support.waiting import until

if TYPE_CHECKING:
    import pytest

RULES = ReadinessRules("open", connection_limit(100, 0.9), stale_after_seconds=3.0)


def failing() -> float:
    raise ScrapeError("late", "the application hangs")


def metrics(board: ReadinessBoard) -> dict[str, float]:
    families = text_string_to_metric_families(sidecar_answer(board, "/metrics").body.decode())
    samples = [sample for family in families for sample in family.samples]
    return {" ".join((sample.name, *sample.labels.values())): sample.value for sample in samples}


def test_every_path_except_livez_and_metrics_is_the_probe() -> None:
    board = ReadinessBoard(RULES, lambda: 10.0)
    board.update(lambda: 100.0)
    statuses = {path: sidecar_answer(board, path).status for path in ("/", "/readyz", "/healthz", "/livez", "/metrics")}
    assert statuses == {"/": 503, "/readyz": 503, "/healthz": 503, "/livez": 200, "/metrics": 200}


def test_own_metrics_match_the_probe() -> None:
    board = ReadinessBoard(RULES, lambda: 10.0)
    board.update(lambda: 99.5)
    board.update(failing)
    found = metrics(board)
    assert found["tidewatch_readiness_ready"] == 1
    assert found["tidewatch_readiness_connections"] == 99.5
    assert found["tidewatch_readiness_limit"] == 100
    assert found["tidewatch_readiness_resume_below"] == 90
    assert found["tidewatch_readiness_reads_total ok"] == 1
    assert found["tidewatch_readiness_reads_total late"] == 1


def test_an_unknown_number_of_connections_is_absent() -> None:
    assert "tidewatch_readiness_connections" not in metrics(ReadinessBoard(RULES))


def test_a_process_that_ends_is_not_ready() -> None:
    board = ReadinessBoard(RULES)
    board.update(lambda: 1.0)
    board.stop()
    answer = sidecar_answer(board, "/")
    assert (answer.status, answer.body) == (503, b"not ready: shutting down\n")


def test_states_are_logged_only_when_they_change(caplog: pytest.LogCaptureFixture) -> None:
    board = ReadinessBoard(RULES)
    with caplog.at_level("INFO"):
        for connections in (99.0, 100.0, 100.0, 95.0, 89.0, 89.0):
            board.update(lambda connections=connections: connections)  # type: ignore[misc]
        for _ in range(3):
            board.update(failing)
        board.update(lambda: 1.0)
    assert [record.getMessage() for record in caplog.records] == [
        "the pod is full",
        "the pod has room again",
        "the metric cannot be read (late)",
        "the metric can be read again",
    ]


def test_a_fault_of_the_sidecar_itself_leaves_the_pod_ready_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    board = ReadinessBoard(RULES)

    def faulty() -> None:
        raise RuntimeError("a fault")

    tasks = Tasks(board)
    with caplog.at_level("CRITICAL"):
        tasks.periodic("metric", faulty, every_seconds=1.0, deadline_seconds=1.0)
        until(lambda: metrics(board)["tidewatch_readiness_reads_total internal_error"])
        assert tasks.stop(10.0) == ()
    answer = sidecar_answer(board, "/")
    assert answer.status == 200
    assert b"the task metric failed" in answer.body
