"""Paths that cannot even be looked at, such as those in a folder of another user, are named like any missing file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.forked import ADAPTER, RECOMMENDER, run

if TYPE_CHECKING:
    from pathlib import Path

TOO_LONG: Final = f"/tmp/{'a' * 256}"
"""The name fails in the same calls as one in a folder without permission, also for a test that runs as root."""
PROMETHEUS: Final = "--prometheus-url=http://127.0.0.1:9"
RULES: Final = "rules: []\n"
CONFIGURATION: Final = "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nrecommendations: []\n"


@pytest.mark.parametrize(
    ("program", "command"),
    [
        (ADAPTER, f"serve {PROMETHEUS} --config"),
        (ADAPTER, f"serve {PROMETHEUS} --config=rules.yaml --secure-port=0 --cert-dir=certs --objects"),
        (ADAPTER, f"serve {PROMETHEUS} --config=rules.yaml --secure-port=0 --objects=. --cert-dir"),
        (ADAPTER, f"nodes {PROMETHEUS} --port=0 --objects"),
        (ADAPTER, f"nodes {PROMETHEUS} --port=0 --objects=. --scheduling-config"),
        (ADAPTER, f"explain a {PROMETHEUS} --config"),
        (ADAPTER, f"explain a {PROMETHEUS} --config=rules.yaml --objects"),
        (ADAPTER, f"init {PROMETHEUS} --out"),
        (ADAPTER, "check --config"),
        (ADAPTER, "doctor --config"),
        (ADAPTER, "schema rules --out"),
        (RECOMMENDER, f"init {PROMETHEUS} --out"),
        (RECOMMENDER, "run --config"),
        (RECOMMENDER, "run --config=config.yaml --objects"),
        (RECOMMENDER, "recommend --config"),
        (RECOMMENDER, "recommend --config=config.yaml --cluster"),
        (RECOMMENDER, "recommend --config=config.yaml --cluster=pods.yaml --add-pods"),
        (RECOMMENDER, "recommend --config=config.yaml --cluster=pods.yaml --shapes"),
        (RECOMMENDER, "backtest --config=config.yaml --series"),
        (RECOMMENDER, "backtest --config=config.yaml --trace"),
        (RECOMMENDER, "replay --config=config.yaml --recording"),
        (RECOMMENDER, "doctor --config"),
        (RECOMMENDER, "expander --listen=127.0.0.1:0 --config"),
    ],
)
def test_a_path_that_may_not_be_looked_at_is_an_error_of_one_line(
    program: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "config.yaml").write_text(CONFIGURATION)
    (tmp_path / "pods.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    ended = run(*shlex.split(command)[:-1], f"{shlex.split(command)[-1]}={TOO_LONG}", program=program)
    assert ended.code == 2, ended.error
    assert "Traceback" not in ended.error
    assert len(ended.error.splitlines()) <= 2, ended.error
