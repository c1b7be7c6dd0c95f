"""The default address of Prometheus is shown by those commands alone that ask it."""

from __future__ import annotations

from adapter.commands.main import COMMANDS as ADAPTER
from recommender.commands.main import COMMANDS as RECOMMENDER
from recommender.kubectl.main import COMMANDS as PLUGIN


def test_commands_that_ask_only_a_named_prometheus_show_no_default_address() -> None:
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
