"""The command line as a whole: the environment, ports in use, help, and secrets, which are never shown."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.serve_settings import serve_settings
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from tests.adapter.commands.checked_rules import GOOD
from tests.adapter.commands.harness import OBJECTS, RULES
from tests.support import serving
from tests.support.caller import PATIENCE_SECONDS
from tests.support.forked import run
from tests.support.serving import Trust, running_adapter, serving_flags

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

NOWHERE = "http://127.0.0.1:9"


def test_environment_sets_flags_and_the_command_line_wins(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    environment = {"TIDEWATCH_FLAG_ON_NO_DATA": "error", "TIDEWATCH_FLAG_SHUTDOWN_DELAY": "1h"}
    with (
        running_adapter(
            tmp_path, trust, prometheus_url=prometheus.url, rules=RULES, objects=OBJECTS, environment=environment
        ) as adapter,
        adapter.caller() as caller,
    ):
        assert caller.external("queue_never").status == 404
        assert adapter.process.stop(PATIENCE_SECONDS) == 0


def test_an_unknown_variable_of_the_environment_is_exit_2(tmp_path: Path, trust: Trust) -> None:
    flags = serving_flags(tmp_path, NOWHERE, RULES, {})
    ended = run("serve", *flags, *trust.flags(), environment={"TIDEWATCH_FLAG_REFRESH_INTERVALL": "5s"})
    assert ended.code == 2
    assert ended.error == (
        "tidewatch-adapter: unknown environment variable TIDEWATCH_FLAG_REFRESH_INTERVALL: "
        "did you mean TIDEWATCH_FLAG_REFRESH_INTERVAL?\n"
    )


@pytest.mark.parametrize("flag", ["secure-port", "plain-bind-address"])
def test_a_port_in_use_is_one_line(tmp_path: Path, trust: Trust, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = f"--{flag}={port}" if flag == "secure-port" else f"--{flag}=127.0.0.1:{port}"
        ended = run("serve", *serving_flags(tmp_path, NOWHERE, RULES, {}), *trust.flags(), given)
    assert (ended.code, ended.out) == (1, "")
    assert ended.error.startswith(
        f"tidewatch-adapter: cannot listen on 127.0.0.1:{port}: another process listens on this address: "
    )
    assert ended.error.count("\n") == 1


def test_version_and_help_are_printed() -> None:
    versions = [serving.run("--version"), serving.run("serve", "--version")]
    assert len(set(versions)) == 1
    assert (versions[0].code, versions[0].error) == (0, "")
    assert versions[0].out.startswith("tidewatch-adapter 0.")
    serve = serving.run("serve", "--help=all")
    assert (serve.code, serve.error) == (0, "")
    for flag in SERVE.flags:
        assert f"--{flag.name}" in serve.out


def test_an_unknown_command_is_exit_2() -> None:
    ended = run("sevre")
    assert (ended.code, ended.out) == (2, "")
    assert ended.error == "tidewatch-adapter: there is no command 'sevre': did you mean serve?\n"


SECRET = "s3cr3t-that-nobody-may-see"


def ways_to_give_a_secret(folder: Path, url: str) -> Iterator[tuple[str, list[str]]]:
    secret_file = folder / "secret"
    secret_file.write_text(SECRET)
    with_password = url.replace("http://", f"http://alice:{SECRET}@")
    yield "header", [f"--prometheus-header=Authorization=Bearer {SECRET}"]
    yield "URL", [f"--prometheus-url={with_password}"]
    yield "files", ["--prometheus-username=alice", f"--prometheus-password-file={secret_file}"]
    yield "token", [f"--prometheus-token-file={secret_file}"]


@pytest.mark.parametrize("way", ["header", "URL", "files", "token"])
def test_secrets_are_in_no_log_no_answer_and_no_metric(tmp_path: Path, trust: Trust, way: str) -> None:
    """No Prometheus listens here, since failures are what is reported in most detail."""
    flags = dict(ways_to_give_a_secret(tmp_path, NOWHERE))[way]
    with (
        running_adapter(
            tmp_path, trust, "--log-level=debug", *flags, prometheus_url=NOWHERE, rules=RULES, objects=OBJECTS
        ) as adapter,
        adapter.caller() as caller,
    ):
        answers = [caller.pods("open_connections", labelSelector="app=web"), caller.external("queue_depth")]
        assert {answer.status for answer in answers} == {503}
        adapter.wait_for("Prometheus at .* does not answer")
        seen = "".join([adapter.log, adapter.plain("/metrics").text, *(answer.text for answer in answers)])
        assert NOWHERE.removeprefix("http://") in seen
        assert SECRET not in seen


@pytest.mark.parametrize(
    "wrong",
    [
        [f"--prometheus-url=ftp://alice:{SECRET}@host"],
        [f"--prometheus-url=http://alice:{SECRET}@host:port"],
        [f"--prometheus-url=http://alice:{SECRET}@host", f"--prometheus-header=Authorization={SECRET}"],
        [f"--prometheus-header=X-Token={SECRET}\n"],
        [f"--prometheus-header={SECRET}"],
    ],
    ids=["scheme", "port", "two ways", "control character", "no value"],
)
def test_errors_about_a_wrong_command_line_contain_no_secrets(tmp_path: Path, trust: Trust, wrong: list[str]) -> None:
    line = [*serving_flags(tmp_path, NOWHERE, RULES, {}), *trust.flags(), *wrong]
    with pytest.raises(UsageError) as caught:
        serve_settings(parse_flags(SERVE, line, {}))
    assert SECRET not in str(caught.value)


def test_logs_can_be_json(tmp_path: Path, trust: Trust) -> None:
    with running_adapter(
        tmp_path,
        trust,
        "--log-format=json",
        prometheus_url=NOWHERE,
        rules=RULES,
        objects=OBJECTS,
        is_up=r'"message": "serving"',
    ) as adapter:
        lines = [json.loads(line) for line in adapter.log.splitlines()]
        assert {"time", "level", "logger", "message"} <= set.intersection(*(set(line) for line in lines))


def test_without_a_command_the_usage_is_printed() -> None:
    ended = run()
    assert (ended.code, ended.error) == (0, "")
    assert ended.out.startswith("Usage: tidewatch-adapter COMMAND")


def test_the_installed_program_ends_a_command_without_a_word_on_stderr(tmp_path: Path) -> None:
    """Most runs are forked, and do not finalize the interpreter, which may also print."""
    (tmp_path / "rules.yaml").write_text(GOOD)
    ended = serving.run("check", f"--config={tmp_path / 'rules.yaml'}")
    assert (ended.code, ended.error) == (0, "")
    assert ended.out.endswith("0 errors, 0 warnings\n")
