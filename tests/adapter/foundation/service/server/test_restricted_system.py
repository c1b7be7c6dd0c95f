"""Systems that refuse a process or a file: a limit on processes is reached, or every folder is read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.adapter.foundation.service.servers import (
    PATIENCE,
    Certificates,
    get,
    is_closed,
    running_server,
    send_head,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


def test_a_first_worker_that_cannot_be_forked_is_one_line_and_exit_1(
    tmp_path: Path, certificates: Certificates
) -> None:
    with running_server(tmp_path, certificates, until_serving=False, refused_forks=[0]) as server:
        assert server.process.wait(PATIENCE) == 1
    assert server.log == (
        "example-server: cannot start a worker: Resource temporarily unavailable: "
        "raise the limit on the processes of the pod or node, or its memory\n"
    )


def test_a_replacement_that_cannot_be_forked_is_tried_again_later(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates, refused_forks=[1]) as server:
        with server.connect() as sock:
            send_head(sock, "/crash")
            assert is_closed(sock)
        until(lambda: server.log.count(" serving address=") == 2)
        with server.connect() as sock:
            assert get(sock)[0] == 200
        assert server.process.is_running
        assert "cannot start a worker: Resource temporarily unavailable" in server.log
        assert "Traceback" not in server.log


def test_a_process_without_any_writable_folder_serves(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates, no_temporary_files=True) as server, server.connect() as sock:
        assert get(sock)[0] == 200
