"""The metrics and values behind the golden exchanges of this folder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.readings import errors
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from tests.adapter.metrics.apis.fakes import (
    BRANDS,
    DEPLOYMENTS,
    INGRESSES,
    NAMESPACES,
    NODES,
    VOLUMES,
    AskedExternal,
    AskedObjects,
    FakeReadings,
    answer,
    custom_metric,
    external_metric,
    rows,
)

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Metric

RPS = custom_metric("http_rps", series="http_requests_total")
NAMESPACE_RPS = custom_metric("http_rps", NAMESPACES, series="http_requests_total")
DEPLOYMENT_RPS = custom_metric("http_rps", DEPLOYMENTS)
INGRESS_RPS = custom_metric("http_rps", INGRESSES)
BRAND_RPS = custom_metric("http_rps", BRANDS)
RECORDED = custom_metric("job:http_inflight:sum")
LOAD = custom_metric("load", NODES)
USED = custom_metric("used_bytes", VOLUMES)
QUEUE = external_metric("queue_depth")
LAG = external_metric("consumer_lag", namespace_label=None)
BROKEN = external_metric("broken")
METRICS = (RPS, NAMESPACE_RPS, DEPLOYMENT_RPS, INGRESS_RPS, BRAND_RPS, RECORDED, LOAD, USED, QUEUE, LAG, BROKEN)

WEB = BySelector(parse_selector("app=web"))
ALL = BySelector(EVERYTHING)

FAILURES = {
    "refused": errors.QueryRefusedByPrometheusError("Prometheus refused the query: bad_data: parse error"),
    "partial": errors.PartialAnswerError("Prometheus answered with a warning: some stores did not answer"),
    "unreachable": errors.SourceUnreachableError("Prometheus at http://prometheus:9090: Connection refused"),
    "aged": errors.SampleTooOldError("the metric has no value: its series' last samples are from 2026-11-21T06:00:00Z"),
    "slow": errors.SourceSlowError("Prometheus did not answer within 2 s; the query goes on"),
    "crowded": errors.TooMuchDemandError("namespace 'shop' asks for 2000 different things already"),
    "gt": errors.UnanswerableSelectorError("the selector 'shard>5' has no form in PromQL"),
}
"""The error of the external metric `broken`, by the value of its label `why`."""


def golden_readings() -> FakeReadings:
    """Return readings that know exactly what the golden exchanges ask for."""
    readings = FakeReadings(Catalogue(METRICS, generation=1))
    readings.answers = {
        _objects(RPS, "shop", WEB): answer(("web-0", 12.5), ("web-1", 1000.0), ("web-2", 0.0)),
        _objects(RPS, "shop", WEB, "code=500,verb in (GET,POST)"): answer(("web-0", 0.25)),
        _objects(RPS, "shop", WEB, "!canary,tier,verb notin (GET)"): answer(("web-0", 1.0)),
        _objects(RPS, "shop", BySelector(parse_selector("app=idle"))): answer(),
        _objects(RPS, "shop", BySelector(parse_selector("app=nobody"))): errors.NoObjectsMatchError(
            "no pods in namespace 'shop' match the selector 'app=nobody'"
        ),
        _objects(RPS, "new", ALL): errors.ObjectsNotKnownError("the first list of pods has not arrived yet"),
        _objects(RPS, "shop", ByName("web-0")): answer(("web-0", 12.5)),
        _objects(RPS, "shop", ByName("idle-0")): errors.NoSampleError("Prometheus has no sample for it"),
        _objects(NAMESPACE_RPS, None, ByName("shop")): answer(("shop", 1_234_567.0)),
        _objects(NAMESPACE_RPS, None, ALL): answer(("other", 1e6), ("shop", 1_234_567.0)),
        _objects(DEPLOYMENT_RPS, "shop", ByName("web")): answer(("web", 1e9)),
        _objects(INGRESS_RPS, "shop", ByName("front")): answer(("front", 2500.0)),
        _objects(BRAND_RPS, "shop", ByName("gouda")): answer(("gouda", 0.0005)),
        _objects(RECORDED, "shop", WEB): answer(("web-0", 3.0)),
        _objects(LOAD, None, ByName("n1")): answer(("n1", -1.5)),
        _objects(LOAD, None, BySelector(parse_selector("pool=a"))): answer(("n1", -1.5), ("n2", 0.001)),
        _objects(USED, None, ByName("pv-1")): answer(("pv-1", 10_485_760.0)),
        _external(QUEUE, "shop", "queue=orders"): rows(
            ({"queue": "orders", "shard": "2"}, 2.0), ({"queue": "orders", "shard": "1"}, 40.0)
        ),
        _external(QUEUE, "shop"): rows(),
        _external(LAG, "*"): rows(({}, 7.0)),
        _objects(RPS, "measured", WEB): replace(answer(("web-0", 12.5)), window_seconds=120),
        _external(QUEUE, "measured"): replace(rows(({"queue": "orders"}, 42.0)), window_seconds=30),
        **{_external(BROKEN, "shop", f"why={why}"): error for why, error in FAILURES.items()},
        _external(BROKEN, "shop"): ZeroDivisionError("a fault"),
    }
    return readings


def _objects(
    metric: Metric, namespace: str | None, which: ByName | BySelector, metric_selector: str = ""
) -> AskedObjects:
    return AskedObjects(metric, namespace, which, parse_selector(metric_selector))


def _external(metric: Metric, namespace: str, selector: str = "") -> AskedExternal:
    return AskedExternal(metric, namespace, parse_selector(selector))
