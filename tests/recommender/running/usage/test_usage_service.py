"""The service that reads usage while the configuration changes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.running.usage.usage_keeping import UsageKeeper
from recommender.running.usage.usage_service import UsageService
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.running.usage.usage_needs import UsageNeed


class Queries:
    def use(self, connections: object) -> None:
        """Take the connections."""


def configuration(*, margin: str) -> Configuration:
    kind = f"resources: {{fromUsage: {{margin: {margin}}}, forEach: {{}}}}"
    return read_configuration(whole(entry("sizes", kind=kind), top="prometheus: {url: http://p}\n"), "r.yaml")


@pytest.mark.parametrize("margin", ["15%", "20%"], ids=["of others", "of its own"])
def test_reading_of_usage_is_interrupted_only_if_the_needed_usage_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, margin: str
) -> None:
    service, stop, seen = UsageService(Queries(), tmp_path, Clock()), threading.Event(), []  # type: ignore[arg-type]
    service.use(configuration(margin="15%"), {})

    def read(_keeper: UsageKeeper, _need: UsageNeed, may_go_on: Callable[[], bool]) -> None:
        service.use(configuration(margin=margin), {})
        seen.append(may_go_on())
        stop.set()

    monkeypatch.setattr(UsageKeeper, "read", read)
    service.keep(stop)
    assert seen == [margin == "15%"]
