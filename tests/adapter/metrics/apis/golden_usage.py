"""The usage of pods and nodes behind the golden exchanges of metrics.k8s.io."""

from __future__ import annotations

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.readings import errors
from adapter.metrics.readings.answers import ByName, BySelector, NamedBySelector, UsageAnswer, UsageItem
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.rulebook.parsing.resource_rules import NODES, PODS
from tests.adapter.metrics.apis.fakes import AT, Asked, AskedUsage, FakeReadings, resource_rules

ALL = BySelector(EVERYTHING)
WEB_0 = UsageItem(
    "shop",
    "web-0",
    {"app": "web", "pod-template-hash": "5d8f"},
    AT,
    {"app": {"cpu": 0.25, "memory": 100 * 2.0**20}, "proxy": {"cpu": 0.0625, "memory": 10 * 2.0**20}},
)
WEB_1 = UsageItem(
    "shop", "web-1", {"app": "web"}, AT - 10, {"app": {"cpu": 0.5, "memory": 5e6}, "init": {"cpu": 0.001}}
)
"""A pod whose init container has ended."""
HALF = UsageItem("half", "web-1", {"app": "web"}, AT - 10, {"app": {"memory": 5e6}})
OTHER = UsageItem("other", "web-0", {"app": "web"}, AT, {"app": {"cpu": 3.0, "memory": 2.0**30}})
N1 = UsageItem(None, "n1", {"zone": "a"}, AT, {"": {"cpu": 1.5, "memory": 2.0**33}})
N2 = UsageItem(None, "n2", {"zone": "b"}, AT, {"": {"cpu": 0.001, "memory": 2.0**32 + 1}})


def usage_readings() -> FakeReadings:
    """Return readings that know exactly what the golden exchanges ask for."""
    answers: dict[Asked, UsageAnswer | Exception] = {
        AskedUsage(PODS, None, ALL): _answer(OTHER, WEB_0, WEB_1),
        AskedUsage(PODS, None, NamedBySelector("web-0", EVERYTHING)): _answer(OTHER, WEB_0),
        AskedUsage(PODS, "shop", ALL): _answer(WEB_0, WEB_1),
        AskedUsage(PODS, "shop", BySelector(parse_selector("app=web"))): _answer(WEB_0, WEB_1),
        AskedUsage(PODS, "other", ALL): _answer(OTHER),
        AskedUsage(PODS, "empty", ALL): UsageAnswer((), 90.0, None),
        AskedUsage(PODS, "half", ALL): UsageAnswer(
            (HALF,), 90.0, AT - 10, ("pods/cpu is missing: Prometheus did not answer within 2 s",)
        ),
        AskedUsage(PODS, "down", ALL): errors.SourceUnreachableError(
            "Prometheus at http://prometheus:9090: Connection refused"
        ),
        AskedUsage(PODS, "new", ALL): errors.ObjectsNotKnownError("pods: the first list has not arrived yet"),
        AskedUsage(PODS, "shop", ByName("web-0")): _answer(WEB_0),
        AskedUsage(PODS, "shop", ByName("new-0")): errors.NoSampleError(
            "'new-0/proxy' has no value of cpu: Prometheus has no sample for it"
        ),
        AskedUsage(PODS, "shop", ByName("gone-0")): errors.NoSampleError("there is no pod of this name"),
        AskedUsage(NODES, None, ALL): _answer(N1, N2),
        AskedUsage(NODES, None, BySelector(parse_selector("zone in (a)"))): _answer(N1),
        AskedUsage(NODES, None, ByName("n1")): _answer(N1),
        AskedUsage(NODES, None, ByName("n9")): errors.NoSampleError("there is no node of this name"),
    }
    return FakeReadings(Catalogue(generation=1, resource=resource_rules("cpu", "memory")), {**answers})


def _answer(*items: UsageItem) -> UsageAnswer:
    return UsageAnswer(items, 90.0, min(item.evaluated_at for item in items))
