"""The plugin with a scripted API server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from recommender.kubectl.main import main
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass
class Answered:
    """The result of a run of the plugin."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@dataclass
class Plugin:
    """`kubectl-tidewatch` with a kubeconfig that reaches the server."""

    server: ObjectApiServer
    kubeconfig: Path
    capsys: pytest.CaptureFixture[str]

    def answer(self, path: str, document: Mapping[str, Any], status: int = 200) -> None:
        self.server.answers[path] = (status, dict(document))

    def forbid(self, path: str) -> None:
        status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "forbidden", "code": 403}
        self.answer(path, status, 403)

    def run(self, *arguments: str) -> Answered:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([arguments[0], *arguments[1:], f"--kubeconfig={self.kubeconfig}"])
        out, err = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Answered(ended.value.code, out, err)

    def why(self, subject: str, *flags: str) -> Answered:
        return self.run("why", subject, "-n", "shop", *flags)

    def with_context_namespace(self, namespace: str) -> None:
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = namespace
        self.kubeconfig.write_text(yaml.safe_dump(config))


@pytest.fixture
def plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Plugin]:
    with ObjectApiServer() as server:
        yield Plugin(server, server.kubeconfig(tmp_path / "config"), capsys)
