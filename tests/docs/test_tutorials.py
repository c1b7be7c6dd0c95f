"""The tutorials that need no cluster: every command runs as it stands. `make e2e` runs the others.

What a reader would already have is made here: the objects that `kubectl get` would print, and the page's Prometheus.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.commands.main import main as run_adapter
from recommender.commands.main import main as run_recommender
from tests.docs.blocks import Block, commands_of
from tests.docs.tutorials import TUTORIALS, Step, reader_s_folder, steps_of
from tests.recommender.backtest.replays import BUDGETS, FEW, ONE_BUDGET
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus

HERE: Final = ("size-a-cluster", "predict")
IN_E2E: Final = ("replace-an-adapter", "place-by-load")
PROMETHEUS: Final = "http://prometheus:9090"
PROGRAMS: Final = {"tidewatch-adapter": run_adapter, "tidewatch-recommender": run_recommender}
_HOUR: Final = 3600


def pooled() -> list[dict[str, Any]]:
    """Return the objects of the example, whose groups have the labels of the tutorial's own configuration."""
    text = (CHECKOUT / "docs/examples/cluster-size/cluster.json").read_text()
    for old, new in (("a", "general"), ("b", "spot")):
        text = text.replace(f'"pool": "{old}"', f'"pool": "{new}"')
    found: list[dict[str, Any]] = json.loads(text)["items"]
    assert {node["metadata"]["labels"].get("pool") for node in found if node["kind"] == "Node"} >= {"general", "spot"}
    return found


def gateway() -> dict[str, Any]:
    labels = {"app": "gateway"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "gateway", "image": "gateway"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gateway", "namespace": "chat"},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
        "status": {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3},
    }


@pytest.fixture(scope="module")
def loaded(start_prometheus: Callable[..., ScrapedPrometheus]) -> str:
    """Return the URL of a Prometheus with three days of connections, whose number changes with the hour."""
    now = math.floor(time.time())
    times = range(now - 3 * 24 * _HOUR, now + _HOUR, 240)
    series = 'websocket_connections{{namespace="chat",pod="gateway-0"}} {:.0f} {}'
    lines = [series.format(40000 - 20000 * math.cos(at / 24 / _HOUR * 2 * math.pi), at) for at in times]
    history = "\n".join(["# TYPE websocket_connections gauge", *lines, "# EOF", ""])
    return start_prometheus(history=history).url


def run(words: list[str]) -> None:
    """Run one command of a page; the output of a kubectl command has already been put into its file."""
    program, *arguments = words
    if program == "kubectl":
        *_, redirection, name = words
        assert redirection == ">"
        assert json.loads(Path(name).read_text())["items"]
        return
    with pytest.raises(SystemExit) as ended:
        PROGRAMS[program](arguments)
    assert ended.value.code == 0, words


def follow(step: Step, folder: Path, url: str) -> None:
    text = step.text.replace(PROMETHEUS, url)
    if step.file:
        # On a busy machine a forecast takes longer than facts are fresh by default.
        (folder / step.file).write_text(f"{text}staleAfter: 1h\n")
        return
    for words in commands_of(Block(TUTORIALS / step.place, 0, "", text)):
        run(words)


@pytest.mark.parametrize("name", HERE)
def test_every_command_of_a_tutorial_runs(
    name: str,
    loaded: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("recommender.commands.backtest.command.MODELS", FEW)
    monkeypatch.setattr(BUDGETS, ONE_BUDGET)
    monkeypatch.chdir(reader_s_folder(tmp_path))
    objects = pooled() if name == "size-a-cluster" else [gateway()]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    for step in steps_of(name):
        follow(step, tmp_path, loaded)
    printed = capsys.readouterr()
    assert "RECOMMENDATION" in printed.out
    assert " ok " in printed.out


def test_every_tutorial_is_run_here_or_in_e2e() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.md")} == {*HERE, *IN_E2E}
