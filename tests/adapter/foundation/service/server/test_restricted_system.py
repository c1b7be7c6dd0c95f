"""Systems that refuse a process or a file: a limit on processes is reached, or every folder is read-only."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapter.foundation.service.servers import PATIENCE, Certificates, get, is_closed, running_server, send_head
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


def test_a_worker_without_a_file_for_its_sign_of_life_is_no_matter_of_processes(
    tmp_path: Path, certificates: Certificates
) -> None:
    with running_server(tmp_path, certificates, until_serving=False, no_sign_of_life=errno.EMFILE) as server:
        assert server.process.wait(PATIENCE) == 1
    assert server.log == "example-server: cannot start a worker: Too many open files\n"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"refused_forks": [1]}, "cannot start a worker: Resource temporarily unavailable"),
        (
            {"threadless_forks": [1]},
            "example-server: cannot start the threads of a worker: can't start new thread: raise the limit",
        ),
    ],
)
def test_a_replacement_that_lacks_processes_or_threads_is_tried_again_later(
    tmp_path: Path, certificates: Certificates, settings: dict[str, Any], reason: str
) -> None:
    with running_server(tmp_path, certificates, **settings) as server:
        with server.connect() as sock:
            send_head(sock, "/crash")
            assert is_closed(sock)
        until(lambda: server.log.count(" serving address=") == 2)
        with server.connect() as sock:
            assert get(sock)[0] == 200
        assert server.process.is_running
        assert reason in server.log
        assert "Traceback" not in server.log


def test_a_process_without_any_writable_folder_serves(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates, no_temporary_files=True) as server, server.connect() as sock:
        assert get(sock)[0] == 200
