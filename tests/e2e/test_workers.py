"""Several clusters at a time: each worker has a network of its own, and modules are distributed by their durations."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.durations import TABLE, longest_first, name_of, read_table
from tests.e2e.worker import MODULE

_HOLD = """
import os, socket
with socket.create_server(("10.99.0.1", 443)):
    print(os.readlink("/proc/self/ns/net"), flush=True)
    input()
"""


@pytest.mark.needs_pods
def test_each_worker_can_listen_where_clusters_do_at_the_same_time() -> None:
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", MODULE, "-c", _HOLD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(2)
        ]
        for worker in workers:
            stack.callback(worker.kill)
        networks = [worker.stdout.readline().strip() for worker in workers if worker.stdout]
        own = Path("/proc/self/ns/net").readlink()
    assert all(name.startswith("net:") for name in networks)
    assert len({*networks, str(own)}) == 3


@pytest.mark.parametrize(
    ("modules", "order"),
    [
        ("a a b c", "b a a c"),
        ("b a b", "b b a"),
        ("c new a", "a new c"),
        ("", ""),
    ],
    ids=["the longest first", "a module stays whole", "one that is not known is short", "nothing"],
)
def test_modules_are_ordered_by_their_durations(modules: str, order: str) -> None:
    table = {"a": 30.0, "b": 200.0, "c": 1.0}
    paths = [TABLE.parent / name for name in modules.split()]
    assert [paths[index].name for index in longest_first(paths, table)] == order.split()


def test_the_order_of_tests_within_a_module_is_kept() -> None:
    modules = [TABLE.parent / name for name in ("a", "b", "a", "b")]
    assert longest_first(modules, {"a": 1.0, "b": 2.0}) == [1, 3, 0, 2]


def test_the_table_names_every_existing_module() -> None:
    modules = {name_of(path) for path in TABLE.parent.rglob("test_*.py")}
    table = set(read_table())
    assert table - modules == set(), "gone"
    assert modules - table == set(), "not recorded: python -m tests.e2e --record-durations MODULE"
