"""Ctrl-C and SIGTERM end commands that wait for a server."""

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

_HANDLES_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""A shell that starts a test run in the background makes it ignore SIGINT, and its children inherit that."""


_IS_PROCESS_1 = "import os; os.getpid = lambda: 1"
_STOPS_AT = """
import signal, sys
class Stop:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            print("loading", flush=True)
            signal.pause()
sys.meta_path.insert(0, Stop())
"""
"""Waits for a signal where the module of the first argument would be loaded."""


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
            f"{_HANDLES_SIGINT}; from {program}.commands.main import main; main()",
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


@pytest.mark.parametrize("program", ["adapter.commands", "recommender.commands", "recommender.kubectl"])
@pytest.mark.parametrize(
    "module", ["adapter.foundation.service.flags.program", "adapter.foundation.options.definitions"]
)
@pytest.mark.parametrize(
    ("number", "given", "status"),
    [
        (signal.SIGINT, "", -signal.SIGINT),
        (signal.SIGINT, f"; {_IS_PROCESS_1}", 130),
        (signal.SIGTERM, "", -signal.SIGTERM),
        (signal.SIGTERM, f"; {_IS_PROCESS_1}", 143),
    ],
)
def test_a_signal_ends_a_program_silently_while_its_modules_are_loaded(
    program: str, module: str, number: signal.Signals, given: str, status: int
) -> None:
    command = f"{_HANDLES_SIGINT}{given}{_STOPS_AT}from {program}.main import main; main(['doctor'])"
    with subprocess.Popen(
        [sys.executable, "-c", command, module], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "loading\n"
            process.send_signal(number)
            out, err = process.communicate(timeout=60.0)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (status, "", "")


@pytest.mark.parametrize(
    "arguments",
    [
        (
            "serve --config RULES --prometheus-url URL --lister-kubeconfig KUBECONFIG --cert-dir CERTIFICATES "
            "--serving-secret a/b --service a/s --apiservice v1beta1.custom.metrics.k8s.io"
        ),
        "doctor --kubeconfig KUBECONFIG",
    ],
)
def test_sigterm_ends_process_1_while_it_waits_for_the_api_server(
    tmp_path: Path, silent: socket.socket, arguments: str
) -> None:
    # The kernel delivers no signal to process 1 that it has no handler for, so 143 is from a handler: else it is -15.
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    (tmp_path / "kubeconfig").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        f"users: [{{name: u, user: {{}}}}]\nclusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n"
    )
    words = {"RULES": "rules.yaml", "URL": url, "KUBECONFIG": "kubeconfig", "CERTIFICATES": "certificates"}
    command = f"{_IS_PROCESS_1}; from adapter.commands.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", command, *(words.get(word, word) for word in arguments.split())],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        try:
            silent.settimeout(60.0)
            connection, _ = silent.accept()
            with connection:
                process.terminate()
                status = process.wait(timeout=60.0)
        finally:
            process.kill()
    assert status == 143
