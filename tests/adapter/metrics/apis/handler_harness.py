"""Metrics of each kind of object, for a server without a Prometheus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from adapter.metrics.readings.catalogue.catalogue import Catalogue
from tests.adapter.metrics.apis.fakes import DEPLOYMENTS, NAMESPACES, NODES, custom_metric, external_metric
from tests.support.readings import rulebook_of

if TYPE_CHECKING:
    from adapter.foundation.web.http import Response


RPS = custom_metric("rps")
DEPLOYMENT_RPS = custom_metric("rps", DEPLOYMENTS)
NAMESPACE_RPS = custom_metric("rps", NAMESPACES)
LOAD = custom_metric("load", NODES)
QUEUE = external_metric("queue")
CATALOGUE = Catalogue([RPS, DEPLOYMENT_RPS, NAMESPACE_RPS, LOAD, QUEUE], generation=1)
C1 = "/apis/custom.metrics.k8s.io/v1beta1"
C2 = "/apis/custom.metrics.k8s.io/v1beta2"
E1 = "/apis/external.metrics.k8s.io/v1beta1"
PODS_RPS = f"{C2}/namespaces/shop/pods/%2A/rps"
LOST = rulebook_of(
    """
rules:
- seriesQuery: '{__name__=~"lost.*",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
externalRules:
- seriesQuery: '{__name__="lost_depth"}'
  resources: {namespaced: false}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
"""
)
"""Rules of a custom and an external metric, none of which is served before a look-up has succeeded."""


def failure(response: Response) -> tuple[int, str, str]:
    """Return code, reason and message of a Status, having checked that the Status is complete."""
    status = json.loads(response.body)
    fixed = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": response.status}
    assert fixed.items() <= status.items()
    assert response.content_type == "application/json"
    assert "Retry-After" not in dict(response.headers)
    return response.status, status["reason"], status["message"]
