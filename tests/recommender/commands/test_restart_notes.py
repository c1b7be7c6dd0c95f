"""Changes that need a restart are logged."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from recommender.commands.run.worker import warn_of_restart
from recommender.configuration.recommender_configuration import Configuration, LeaderElection, Listen

START = Configuration()


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        (Configuration(leader_election=LeaderElection(enabled=False)), ["leaderElection"]),
        (Configuration(listen=Listen(page="127.0.0.1:1"), state=Path("elsewhere")), ["listen, state"]),
        (Configuration(poll_interval_seconds=1.0), []),
    ],
)
def test_changes_that_need_a_restart_are_named(
    changed: Configuration, keys: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_restart(START, changed)
    assert [record.fields["keys"] for record in caplog.records] == keys  # type: ignore[attr-defined]
