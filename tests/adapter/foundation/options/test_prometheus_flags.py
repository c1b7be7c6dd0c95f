"""Only the commands that query the default Prometheus show its address."""

from __future__ import annotations

from adapter.commands.table import COMMANDS as ADAPTER
from recommender.commands.table import COMMANDS as RECOMMENDER
from recommender.kubectl.table import COMMANDS as PLUGIN


def test_only_commands_that_query_a_default_prometheus_show_its_address() -> None:
    shown = {
        f"{program.name} {name}": flag.default
        for program in (ADAPTER, RECOMMENDER, PLUGIN)
        for name in program.commands
        for flag in program.load(name).flags.flags
        if flag.name == "prometheus-url" and flag.default is not None
    }
    assert shown == {
        "tidewatch-adapter serve": "https://localhost",
        "tidewatch-adapter explain": "https://localhost",
        "tidewatch-adapter nodes": "http://prometheus-k8s:9090",
    }
