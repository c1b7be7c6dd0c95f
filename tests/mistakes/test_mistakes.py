"""User mistakes: each message names the place, the cause and the repair, in ten lines at most."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from demo.machine.certificates import Authority
from tests.mistakes.adapter import ADAPTER
from tests.mistakes.check import CHECK
from tests.mistakes.check_command import CHECK_COMMAND
from tests.mistakes.kubeconfig import KUBECONFIG_OF_ADAPTER, KUBECONFIG_OF_RECOMMENDER
from tests.mistakes.recommender import RECOMMENDER
from tests.mistakes.recommender_file import RECOMMENDER_FILE
from tests.support.forked import ADAPTER as ADAPTER_PROGRAM
from tests.support.forked import RECOMMENDER as RECOMMENDER_PROGRAM
from tests.support.forked import run
from tests.support.object_apiserver import ObjectApiServer
from tests.support.raw_server import answering, raw_server
from tests.support.tls_endpoint import tls_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mistakes.table import Mistake
    from tests.support.raw_server import Peer

MOST_LINES = 10
DOWN = "http://127.0.0.1:9"
_CREDENTIALS_OF_A_PROGRAM = """\
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:9"}}]
users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-program}}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""
NO_SERIES = b'{"status": "success", "data": []}'
NO_SAMPLES = b'{"status": "success", "data": {"resultType": "vector", "result": []}}'
ROWS = [
    pytest.param(program, mistake, id=f"{program.removeprefix('tidewatch-')} {mistake.name}")
    for program, table in (
        (ADAPTER_PROGRAM, CHECK),
        (ADAPTER_PROGRAM, CHECK_COMMAND),
        (ADAPTER_PROGRAM, ADAPTER),
        (ADAPTER_PROGRAM, KUBECONFIG_OF_ADAPTER),
        (RECOMMENDER_PROGRAM, RECOMMENDER),
        (RECOMMENDER_PROGRAM, RECOMMENDER_FILE),
        (RECOMMENDER_PROGRAM, KUBECONFIG_OF_RECOMMENDER),
    )
    for mistake in table
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the servers and files that a command line may name: down, locked, empty or of another kind."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        locked = stack.enter_context(raw_server(answering(b"", "401 Unauthorized")))
        tenants = stack.enter_context(raw_server(answering(b"no org id", "401 Unauthorized")))
        busy = stack.enter_context(raw_server(answering(b"too many", "429 Too Many Requests")))
        web = stack.enter_context(raw_server(answering(b"<html>Hello</html>")))
        empty = stack.enter_context(raw_server(_empty))
        plain = stack.enter_context(raw_server(lambda peer: peer.answer(b"", "400 Bad Request")))
        endpoint = stack.enter_context(tls_endpoint())
        shown = Authority(folder / "ca").server()
        endpoint.show(shown.certificate_file, shown.key_file)
        cluster = stack.enter_context(ObjectApiServer())
        kubeconfig = cluster.kubeconfig(folder / "kubeconfig")
        nobody = folder / "nobody"
        nobody.write_text(_CREDENTIALS_OF_A_PROGRAM)
        closed = stack.enter_context(ObjectApiServer())
        closed.objects.deny("get", "configmaps")
        gone = folder / "gone"
        gone.write_text(kubeconfig.read_text().replace(cluster.url, "https://127.0.0.1:9"))
        yield {
            "down": DOWN,
            "locked": locked.url,
            "tenants": tenants.url,
            "busy": busy.url,
            "web": web.url,
            "empty": empty.url,
            "plain": plain.url.removeprefix("http://"),
            "tls": f"https://{endpoint.address}",
            "kubeconfig": str(kubeconfig),
            "gone": str(gone),
            "nobody": str(nobody),
            "forbidden": str(closed.kubeconfig(folder / "forbidden")),
        }


def _empty(peer: Peer) -> None:
    """Answer as a Prometheus without any series."""
    while (request := peer.read()) is not None:
        peer.answer(NO_SERIES if "/series" in request.target else NO_SAMPLES)


@pytest.mark.parametrize(("program", "mistake"), ROWS)
def test_a_mistake_is_reported_with_its_place_cause_and_repair(
    program: str,
    mistake: Mistake,
    servers: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in mistake.files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    arguments = shlex.split(mistake.command.format(**servers))
    ended = run(*arguments, environment=mistake.environment, program=program)
    said = ended.out + ended.error
    assert "Traceback" not in said
    assert ended.code == mistake.status, said
    assert len(said.splitlines()) <= MOST_LINES, said
    assert [each for each in (mistake.place, mistake.cause, mistake.repair) if each not in said] == [], said


def test_at_least_eighty_mistakes_cover_all_commands() -> None:
    assert len(ROWS) >= 80
