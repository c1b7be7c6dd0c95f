"""Ctrl-C ends commands that a person waits for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEARS_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""A shell that starts a test run in the background makes it ignore SIGINT, and its children inherit that."""


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Yield a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("recommender", "backtest --config FILE --start 2026-11-01T00:00:00Z --end 2026-11-02T00:00:00Z"),
        ("recommender", "recommend --config FILE --cluster FOLDER"),
        ("adapter", "explain x --namespace a --config RULES --prometheus-url URL --objects FOLDER"),
    ],
)
def test_ctrl_c_ends_a_command_with_one_line(
    tmp_path: Path, silent: socket.socket, program: str, arguments: str
) -> None:
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    (tmp_path / "objects").mkdir()
    (tmp_path / "rules.yaml").write_text(
        "rules:\n- seriesQuery: 'x{namespace!=\"\"}'\n  resources: {template: <<.Resource>>}\n"
        "  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)\n"
    )
    (tmp_path / "recommender.yaml").write_text(
        f"apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nprometheus: {{url: '{url}'}}\n"
        f"state: {tmp_path}\nrecommendations:\n"
        "- {name: a, predictive: {load: sum(x), loadPerReplica: 1, horizon: 1m}}\n"
    )
    words = {"FILE": "recommender.yaml", "RULES": "rules.yaml", "FOLDER": "objects", "URL": url}
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"{_HEARS_SIGINT}; from {program}.commands.main import main; main()",
            *(words.get(word, word) for word in arguments.split()),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        process_group=0,
    )
    try:
        silent.settimeout(20.0)
        connection, _ = silent.accept()
        with connection:
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=20.0)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, "", f"tidewatch-{program}: interrupted\n")
