"""Child processes are started, stopped in time, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from demo.machine.processes import ManagedProcess, ProcessFailedError, start
from tests.support.waiting import until

ENDLESS = ["tail", "-f", os.devnull]
# Says when it stands, and ends on a signal in its own way.
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
PARENT_OF_TWO = (
    "import signal, subprocess; child = subprocess.Popen(['tail', '-f', '/dev/null']);"
    "print(child.pid, flush=True); signal.pause()"
)


def python(log_path: Path, program: str, **options: object) -> ManagedProcess:
    return start([sys.executable, "-c", program], log_path=log_path, name="child", **options)  # type: ignore[arg-type]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def said(log_path: Path) -> str:
    until(lambda: log_path.exists() and log_path.read_text().endswith("\n"))
    return log_path.read_text().strip()


def test_a_child_runs_with_its_environment_and_folder_and_its_output_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = "import os, sys; print(os.environ['WHO'], os.getcwd()); print('bad', file=sys.stderr); sys.exit(3)"
    with python(log, program, environment={"WHO": "me"}, folder=tmp_path) as child:
        assert child.wait(20) == 3
    assert sorted(log.read_text().splitlines()) == ["bad", f"me {tmp_path}"]
    assert not child.is_running


def test_a_child_ends_when_asked(tmp_path: Path) -> None:
    with start(ENDLESS, log_path=tmp_path / "log") as child:
        assert child.is_running
        assert child.stop() == -signal.SIGTERM
        assert child.stop() == -signal.SIGTERM


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with python(log, STUBBORN) as child:
        assert said(log) == "up"
        assert child.stop(timeout_seconds=0.1) == -signal.SIGKILL


def test_a_paused_child_can_be_stopped(tmp_path: Path) -> None:
    with start(ENDLESS, log_path=tmp_path / "log") as child:
        child.pause()
        assert child.stop() == -signal.SIGTERM


def test_children_of_the_child_end_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for end in (ManagedProcess.stop, ManagedProcess.kill):
        log.unlink(missing_ok=True)
        with python(log, PARENT_OF_TWO) as child:
            grandchild = int(said(log))
            assert is_alive(grandchild)
            end(child)
        until(lambda pid=grandchild: not is_alive(pid))  # type: ignore[misc]


def test_a_child_dies_with_its_parent_even_when_that_is_killed(tmp_path: Path) -> None:
    program = f"""
import signal
from pathlib import Path
from demo.machine.processes import start
child = start({ENDLESS}, log_path=Path({str(tmp_path / "log")!r}))
child.wait_until(lambda: Path(f"/proc/{{child.pid}}/comm").read_text() == "tail\\n", 20)
print(child.pid, flush=True)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    until(lambda: not is_alive(child))


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with (
        start(["no-such-program"], log_path=tmp_path / "log") as child,
        pytest.raises(ProcessFailedError, match=r"ended with code 1(.|\n)*no-such-program: No such file"),
    ):
        child.wait_until(lambda: False, 20)


def test_a_child_that_ends_early_is_an_error_with_its_last_output(tmp_path: Path) -> None:
    program = "print('\\n'.join(f'line {i}' for i in range(100))); raise SystemExit(7)"
    with python(tmp_path / "log", program) as child, pytest.raises(ProcessFailedError) as caught:
        child.wait_until(lambda: False, 20)
    assert "child" in str(caught.value)
    assert "ended with code 7" in str(caught.value)
    assert str(caught.value).endswith("line 99")
    assert "line 80\n" not in str(caught.value)


def test_waiting_for_a_child_is_bounded(tmp_path: Path) -> None:
    with start(ENDLESS, log_path=tmp_path / "log") as child:
        with pytest.raises(ProcessFailedError, match=r"is not ready after 0\.1 s"):
            child.wait_until(lambda: False, 0.1)
        with pytest.raises(ProcessFailedError, match=r"still runs after 0\.1 s"):
            child.wait(0.1)


def test_each_child_has_a_group_of_its_own(tmp_path: Path) -> None:
    with start(ENDLESS, log_path=tmp_path / "log") as child:
        assert os.getpgid(child.pid) == child.pid
        assert os.getpgid(0) != child.pid
