"""Cluster Autoscaler's requests to `tidewatch-recommender expander`."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import grpc
import pytest

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.server.addresses import Address
from demo.machine.certificates import Authority
from demo.machine.processes import start
from recommender.commands.expander.command import rules_of
from recommender.commands.expander.server import ExpanderService, make_server
from recommender.commands.main import main
from recommender.configuration.reading import read_configuration
from recommender.kinds.cluster_size.wire.expander_pb2 import BestOptionsRequest, BestOptionsResponse
from tests.recommender.kinds.cluster_size.expanders.test_asked_options import OPTIONS, asked, rules
from tests.support.recommenders import PROGRAM
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.processes import ManagedProcess

CONFIGURATION = """\
apiVersion: tidewatch.io/v1alpha1
kind: RecommenderConfiguration
recommendations:
- name: nodes
  clusterSize:
    expander: EXPANDER
    nodeGroups:
    - {name: large, max: 3, price: 0.1, selector: {pool: large}}
    - {name: small, max: 3, price: 3.0, selector: {pool: small}}
"""


def ask(channel: grpc.Channel, request: bytes, seconds: float = 5.0) -> list[str]:
    """Return the chosen groups, within Cluster Autoscaler's deadline."""
    call: grpc.UnaryUnaryMultiCallable[bytes, BestOptionsResponse] = channel.unary_unary(
        "/grpcplugin.Expander/BestOptions", response_deserializer=BestOptionsResponse.FromString
    )
    return [option.nodeGroupId for option in call(request, timeout=seconds).options]


def port_of(process: ManagedProcess) -> int:
    def found() -> int:
        assert process.is_running, process.log_path.read_text()
        seen = re.search(r"serving .*address=\S*:(\d+)", process.log_path.read_text())
        return 0 if seen is None else int(seen.group(1))

    return until(found, 60.0)


def test_cluster_autoscaler_is_answered_over_tls_and_configuration_changes_take_effect(tmp_path: Path) -> None:
    pair, file = Authority(tmp_path / "serving").server(), tmp_path / "r.yaml"
    file.write_text(CONFIGURATION.replace("EXPANDER", "least-waste"))
    command = [PROGRAM, "expander", f"--config={file}", "--listen=127.0.0.1:0"]
    command += [f"--tls-cert-file={pair.certificate_file}", f"--tls-private-key-file={pair.key_file}"]
    process = start(command, log_path=tmp_path / "expander.log", name="expander")
    with (
        process,
        grpc.secure_channel(
            f"localhost:{port_of(process)}", grpc.ssl_channel_credentials(pair.ca_file.read_bytes())
        ) as channel,
    ):
        assert ask(channel, asked(OPTIONS), 30.0) == ["small"]
        assert ask(channel, b"", 30.0) == []
        (tmp_path / "new").write_text(CONFIGURATION.replace("EXPANDER", "price"))
        (tmp_path / "new").rename(file)
        until(lambda: ask(channel, asked(OPTIONS), 30.0) == ["large"])
        file.write_text("recommendations: [")
        assert ask(channel, asked(OPTIONS), 30.0) == ["large"]
        process.send(signal.SIGTERM)
        until(lambda: not process.is_running)
        assert process.return_code == 0


def test_options_that_cannot_be_compared_in_time_have_an_empty_answer() -> None:
    times = iter((0.0, 3.0, 5.0, 7.0))
    server, port = make_server(
        ExpanderService(lambda: rules("least-waste"), lambda: next(times)), Address("127.0.0.1", 0), None, None
    )
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert ask(channel, asked(OPTIONS), 60.0) == []
    server.stop(None).wait(10.0)


def test_an_invalid_message_is_an_error_and_the_next_request_is_answered() -> None:
    server, port = make_server(ExpanderService(lambda: rules("least-waste")), Address("127.0.0.1", 0), None, None)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(grpc.RpcError):
            ask(channel, b"\xff\xff", 30.0)
        assert ask(channel, asked(OPTIONS), 30.0) == ["small"]
    server.stop(None).wait(10.0)
    assert BestOptionsRequest.FromString(asked(OPTIONS)).options[0].nodeGroupId == "large"


WRONG: dict[str, tuple[tuple[str, ...], str, str]] = {
    "no TLS for others": (("--listen=:7000",), "least-waste", "connects only with TLS: set --tls-cert-file"),
    "half a pair": (("--listen=127.0.0.1:0", "--tls-cert-file=a"), "least-waste", "belong together"),
    "another entry": (
        ("--listen=127.0.0.1:0", "--recommendation=x"),
        "least-waste",
        "there is no recommendation 'x' with clusterSize: there are nodes",
    ),
    "priorities of a ConfigMap": (("--listen=127.0.0.1:0",), "priority", "reads no ConfigMap here"),
    "a client's authority without TLS": (
        ("--listen=127.0.0.1:0", "--client-ca-file=a"),
        "least-waste",
        "--client-ca-file has no effect",
    ),
}


@pytest.mark.parametrize(("flags", "expander", "message"), WRONG.values(), ids=WRONG)
def test_a_configuration_that_cannot_be_served_is_refused_at_startup(
    flags: tuple[str, ...], expander: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.yaml").write_text(CONFIGURATION.replace("EXPANDER", expander))
    with pytest.raises(SystemExit) as ended:
        main(["expander", f"--config={tmp_path}/r.yaml", *flags])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


REFUSED = "- name: others\n  clusterSize: {nodeGroup: []}\n"
MISTAKE = "the key 'nodeGroup' is not known"


@pytest.mark.parametrize("name", ["", "others"])
def test_the_mistake_of_a_refused_entry_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(f"{CONFIGURATION.partition('- name')[0]}{REFUSED}")
    with pytest.raises(SystemExit) as ended:
        main(["expander", f"--config={file}", "--listen=127.0.0.1:0", f"--recommendation={name}"])
    assert ended.value.code == 2
    assert MISTAKE in capsys.readouterr().err


def test_the_only_entry_that_can_be_used_goes_on_beside_a_refused_one() -> None:
    configuration = read_configuration(f"{CONFIGURATION.replace('EXPANDER', 'price')}{REFUSED}", "r.yaml")
    assert [each.name for each in configuration.refused] == ["others"]
    assert rules_of(configuration, "") == rules_of(configuration, "nodes")
    with pytest.raises(UsageError, match=MISTAKE):
        rules_of(configuration, "others")


def test_a_key_of_another_certificate_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """gRPC itself logs four lines, which name neither file."""
    (tmp_path / "r.yaml").write_text(CONFIGURATION.replace("EXPANDER", "least-waste"))
    one, other = (Authority(tmp_path / name).server() for name in ("one", "other"))
    for key, message in (
        (other.key_file, f"{other.key_file}: not the key of {one.certificate_file}"),
        (one.certificate_file, "cannot be used: name a certificate and its unencrypted key, both in PEM"),
    ):
        flags = ("--listen=127.0.0.1:0", f"--tls-cert-file={one.certificate_file}", f"--tls-private-key-file={key}")
        with pytest.raises(SystemExit) as ended:
            main(["expander", f"--config={tmp_path}/r.yaml", *flags])
        assert ended.value.code == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert message in line
