"""A limit on processes leaves few threads: the process starts with one for each kind of request, or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapter.foundation.service.servers import (
    PATIENCE,
    Certificates,
    connections,
    get,
    read_answer,
    running_server,
    send_head,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

FEWEST = 5
"""The threads of the metrics, the plain port and the task, and one for requests of each kind."""


@pytest.mark.parametrize("most", range(FEWEST))
def test_too_few_threads_for_any_request_are_one_line_and_exit_1(
    tmp_path: Path, certificates: Certificates, most: int
) -> None:
    with running_server(tmp_path, certificates, until_serving=False, most_threads=most, reserved_threads=1) as server:
        assert server.process.wait(PATIENCE) == 1
    lines = [text for text in server.log.splitlines() if "metrics and health are served" not in text]
    repair = "raise the limit on the processes of the pod or node, or its memory"
    assert lines == [f"example-server: cannot start the threads of a worker: can't start new thread: {repair}"]


def test_a_request_without_a_thread_of_its_own_waits_for_one_that_runs(
    tmp_path: Path, certificates: Certificates
) -> None:
    answered = tmp_path / "answered"
    with (
        running_server(tmp_path, certificates, most_threads=FEWEST - 1, threads=4) as server,
        server.connect() as busy,
        server.connect() as waiting,
    ):
        send_head(busy, f"/held?until={answered}")
        until(lambda: connections(server, "request") == 1)
        send_head(waiting, "/facts")
        until(lambda: connections(server, "request") == 2)
        answered.touch()
        assert read_answer(waiting)[0] == 200
        assert read_answer(busy)[0] == 200
        assert get(busy)[0] == 200
