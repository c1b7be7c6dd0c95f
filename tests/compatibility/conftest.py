from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.compatibility.cluster import OBJECTS
from tests.compatibility.form import samples_of
from tests.compatibility.harnesses import HARNESSES, MODES
from tests.support.harnesses import prometheus_with
from tests.support.serving import Trust, eventually, running_adapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller
    from tests.support.serving import Adapter


@dataclass(frozen=True, slots=True)
class Served:
    """One harness, served in one mode."""

    prometheus: PrometheusProcess
    adapter: Adapter
    caller: Caller


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], Served]]:
    """Yield a function that starts what serves a harness in some mode on first use; all of it ends with the run."""
    with ExitStack() as stack:
        trust = Trust.made_in(tmp_path_factory.mktemp("trust"))

        @cache
        def prometheus(harness: str) -> PrometheusProcess:
            folder = tmp_path_factory.mktemp(f"prometheus-{harness}")
            return stack.enter_context(prometheus_with(folder, samples_of(HARNESSES[harness], int(time.time()))))

        @cache
        def start(harness: str, mode: str) -> Served:
            folder = tmp_path_factory.mktemp(f"{harness}-{mode}")
            rules = folder / "rules"
            rules.mkdir()
            for case in HARNESSES[harness]:
                (rules / f"{case.name}.yaml").write_text(case.rules)
            running = running_adapter(
                folder, trust, *MODES[mode], prometheus_url=prometheus(harness).url, rules=rules, objects=OBJECTS
            )
            adapter = stack.enter_context(running)
            rules_read = sum(case.rules.count("seriesQuery: ") for case in HARNESSES[harness])
            looked_up = "tidewatch_adapter_rule_last_success_timestamp_seconds"
            eventually(lambda: adapter.plain("/metrics").text.count(f"\n{looked_up}{{") == rules_read)
            assert not adapter.said(" ERROR "), adapter.log
            return Served(prometheus(harness), adapter, stack.enter_context(adapter.caller()))

        yield start
