"""MetricRule objects that others break, change, delete and recreate, beside one whose metric is requested."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.objects.resources import Resource
from tests.adapter.commands.harness import SHOP
from tests.support.object_apiserver import ObjectApiServer
from tests.support.rule_objects import QUEUE, spec_with
from tests.support.serving import Trust, eventually
from tests.support.tenant_objects import TenantObjects

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

METRIC_RULES: Final = Resource("tidewatch.io", "v1alpha1", "metricrules", "metricrule", "MetricRule", namespaced=True)
CHANGES, ROUNDS = 300, 3
MINE: Final = spec_with(QUEUE, seriesQuery="queue_depth", name={"as": "mine"})
SPECS: Final[tuple[Any, ...]] = (
    None,
    [],
    "text",
    {},
    {"api": ["external"], "rule": [QUEUE]},
    {"api": "external", "rule": None},
    spec_with(QUEUE, seriesQuery="x" * 10_000),
    spec_with(QUEUE, seriesQuery='{__name__=~"(' + "a|" * 2_000 + 'b)"}'),
    spec_with(QUEUE, seriesQuery='{__name__=~".+"}', name={"as": "mine"}),
    spec_with(QUEUE, seriesQuery='queue_depth{namespace="shop"}', name={"as": "mine"}),
    spec_with(QUEUE, metricsQuery="sum(" * 400),
    spec_with(QUEUE, name={"matches": "(a*)*$", "as": "x"}),
    spec_with(QUEUE, name={"as": "queue_depth"}),
    QUEUE,
)
"""Specs that are nonsense, that read much or foreign series, that take names in use, and some that are right."""


def status(caller: Caller, metric: str) -> int:
    return caller.external(metric).status


def is_served(caller: Caller, metric: str) -> bool:
    return status(caller, metric) == 200


def test_objects_of_other_tenants_do_not_affect_a_rule_object_or_the_rule_files(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    with ObjectApiServer() as server:
        objects = TenantObjects(server, METRIC_RULES, SPECS)
        objects.put("shop", "mine", MINE)
        flags = (f"--kubeconfig={server.kubeconfig(tmp_path / 'config')}", "--objects=", "--metric-rules")
        with SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter, adapter.caller() as caller:
            for metric in ("mine", "queue_depth"):
                eventually(partial(is_served, caller, metric))
            for number in range(ROUNDS):
                for change in objects.changed(CHANGES):
                    if change % 20 == 0:
                        assert {status(caller, metric) for metric in ("mine", "queue_depth")} == {200}
                own = f"another_{number}"
                objects.put("shop", own, spec_with(MINE, name={"as": own}))
                eventually(partial(is_served, caller, own))
            assert adapter.plain("/livez").status == 200
            assert "Traceback" not in adapter.log
