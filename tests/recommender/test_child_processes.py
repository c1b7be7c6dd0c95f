"""Functions in child processes: what they return, and that nothing is left behind whatever they do."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from recommender.child_processes.child_errors import (
    ChildClosedError,
    ChildCrashError,
    ChildDeadlineError,
    ChildError,
    ChildMemoryError,
    ChildRaisedError,
    ChildResultError,
)
from recommender.child_processes.parent import ChildLimits, Children
from tests.recommender import heavy
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

ENOUGH = ChildLimits(seconds=60.0)
SHORT = ChildLimits(seconds=1.0)
SMALL = ChildLimits(seconds=60.0, address_space_bytes=256 << 20)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def children(registry: CollectorRegistry) -> Children:
    return Children(registry, "example", most=2)


def runs(registry: CollectorRegistry, outcome: str) -> float | None:
    return registry.get_sample_value("example_child_runs_total", {"name": "fit", "outcome": outcome})


def is_gone(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        # A zombie of somebody else, whom its new parent has not reaped yet, is gone too.
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def own_pipes() -> set[str]:
    """Return this process's pipes and process descriptors, without sockets and files of other tests' servers."""
    links = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            links.add(f"{descriptor.name} {descriptor.readlink()}")
    return {link for link in links if " pipe:" in link or "[pidfd]" in link}


def own_children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()))


def test_a_result_comes_back(children: Children, registry: CollectorRegistry) -> None:
    assert children.run("fit", heavy.add, (2, 3), ENOUGH) == 5
    assert runs(registry, "ok") == 1
    seconds = registry.get_sample_value("example_child_seconds_total", {"name": "fit"})
    assert seconds is not None
    assert seconds > 0


def test_a_child_is_polite_single_threaded_and_light(children: Children) -> None:
    found = children.run("fit", heavy.facts, (), ENOUGH)
    assert found == {
        "nice": min(19, os.nice(0) + 5),
        "threads": "1",
        "group": True,
        "modules": ["recommender.child_processes"],
    }


def test_arguments_and_results_of_megabytes_pass(children: Children) -> None:
    text = b"x" * (5 << 20)
    assert children.run("fit", heavy.join, (text, text), ENOUGH) == text + text


@pytest.mark.parametrize(
    ("function", "arguments", "limits", "error", "message"),
    [
        (heavy.loop_for_ever, (), SHORT, ChildDeadlineError, r"^fit: killed after 1 s$"),
        (heavy.eat_memory, (), SMALL, ChildMemoryError, r"^fit: out of memory$"),
        (heavy.abort, (), ENOUGH, ChildCrashError, r"^fit: the child ended with SIGABRT: the model has exploded"),
        (heavy.fault, (), ENOUGH, ChildCrashError, r"^fit: the child ended with SIGSEGV"),
        (
            heavy.exit_at_once,
            (3,),
            ENOUGH,
            ChildCrashError,
            r"^fit: the child ended with exit status 3: it wrote nothing",
        ),
        (
            heavy.exit_at_once,
            (0,),
            ENOUGH,
            ChildCrashError,
            r"^fit: the child ended with exit status 0: it wrote nothing",
        ),
        (heavy.raise_error, (), ENOUGH, ChildRaisedError, r"^fit: raised: ValueError: the matrix is singular$"),
        (heavy.leave_by_exit, (), ENOUGH, ChildRaisedError, r"^fit: raised: SystemExit: 3$"),
        (heavy.be_unpicklable, (), ENOUGH, ChildResultError, r"^fit: no result: it cannot be pickled"),
        (heavy.be_treacherous, (), ENOUGH, ChildResultError, r"^fit: the result cannot be read: ValueError"),
        (heavy.be_large, (17 << 20,), ENOUGH, ChildResultError, r"^fit: no result: it has 17,.* bytes, more than the"),
    ],
)
def test_what_goes_wrong_has_its_error_and_leaves_nothing_behind(
    children: Children,
    registry: CollectorRegistry,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    limits: ChildLimits,
    error: type[ChildError],
    message: str,
) -> None:
    pipes = own_pipes()
    before = own_children()
    with pytest.raises(error, match=message):
        children.run("fit", function, arguments, limits)
    assert runs(registry, error.outcome) == 1
    assert own_children() == before
    assert own_pipes() <= pipes
    assert registry.get_sample_value("example_children") == 0


def test_a_killed_child_that_the_system_does_not_end_in_time_is_late(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = subprocess.Popen.wait

    def late(child: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        # The second time, when it is cleared away, the child has ended.
        monkeypatch.setattr(subprocess.Popen, "wait", wait)
        raise subprocess.TimeoutExpired(child.args, timeout or 0.0)

    monkeypatch.setattr(subprocess.Popen, "wait", late)
    before = own_children()
    with pytest.raises(ChildDeadlineError, match=r"^fit: killed after 1 s, and not ended 5 s later$"):
        children.run("fit", heavy.loop_for_ever, (), SHORT)
    assert own_children() == before


def test_the_status_of_a_crash_is_known(children: Children) -> None:
    with pytest.raises(ChildCrashError) as raised:
        children.run("fit", heavy.exit_at_once, (7,), ENOUGH)
    assert raised.value.status == 7


def test_what_a_child_prints_is_not_its_result(children: Children) -> None:
    assert children.run("fit", heavy.be_noisy, (), ENOUGH) == "quiet"


def test_a_child_that_is_killed_takes_what_it_has_started_with_it(children: Children, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    arguments = (children, heavy.begin_and_loop, (str(file),), ENOUGH)
    thread = threading.Thread(target=run_quietly, args=arguments, daemon=True)
    thread.start()
    until(file.exists)
    children.close()
    thread.join(20.0)
    for pid in map(int, file.read_text().split()):
        until(lambda pid=pid: is_gone(pid))  # type: ignore[misc]  # bound in the loop


def test_a_result_counts_though_the_child_leaves_a_process(children: Children, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    assert children.run("fit", heavy.leave_a_process, (str(file),), ENOUGH) == "done"
    for pid in map(int, file.read_text().split()):
        until(lambda pid=pid: is_gone(pid))  # type: ignore[misc]  # likewise


def test_a_thread_that_goes_on_does_not_hold_up_the_result(children: Children) -> None:
    assert children.run("fit", heavy.leave_a_thread, (), ENOUGH) == "done"


def test_no_more_than_so_many_run_at_once(children: Children, registry: CollectorRegistry) -> None:
    threads = [
        threading.Thread(target=lambda: run_quietly(children, heavy.wait_for_ever, (), ENOUGH), daemon=True)
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    until(lambda: registry.get_sample_value("example_children") == 2)
    with pytest.raises(ChildDeadlineError, match=r"not started within 0\.1 s"):
        children.run("fit", heavy.add, (1, 1), ChildLimits(seconds=0.1))
    children.close()
    for thread in threads:
        thread.join(20.0)
    assert runs(registry, "closed") == 2
    with pytest.raises(ChildClosedError, match="not started"):
        children.run("fit", heavy.add, (1, 1), ENOUGH)


def run_quietly(
    children: Children, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ChildLimits
) -> None:
    try:
        children.run("fit", function, arguments, limits)
    except ChildClosedError:
        return


def test_a_child_that_does_not_end_in_time_at_shutdown_is_no_deadline_that_passed(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = subprocess.Popen.wait

    def late(process: subprocess.Popen[bytes], timeout: float) -> int:
        monkeypatch.setattr(subprocess.Popen, "wait", wait)
        children.close()
        raise subprocess.TimeoutExpired(process.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", late)
    with pytest.raises(ChildClosedError, match="shutting down"):
        children.run("fit", heavy.add, (1, 1), ENOUGH)


def test_what_cannot_be_pickled_is_refused_before_anything_starts(
    children: Children, registry: CollectorRegistry
) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        children.run("fit", lambda: None, (), ENOUGH)
    assert runs(registry, "ok") is None


def test_a_child_dies_with_the_process_that_has_started_it(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    program = f"""
from prometheus_client import CollectorRegistry
from recommender.child_processes.parent import ChildLimits, Children
from tests.recommender import heavy
Children(CollectorRegistry(), "example", most=1).run(
    "fit", heavy.begin_and_loop, ({json.dumps(str(file))},), ChildLimits(seconds=60.0))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as worker:
        until(file.exists)
        child, grandchild = map(int, file.read_text().split())
        worker.kill()
    try:
        until(lambda: is_gone(child))
    finally:
        os.kill(grandchild, 9)
