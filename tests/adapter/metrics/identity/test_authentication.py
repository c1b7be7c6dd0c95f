"""Paths that kube-apiserver never forwards: there the users of the front proxy are reviewed like all others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.metrics.identity.access_reviews import ReviewDecision
from adapter.metrics.identity.attributes import Attributes, attributes_of
from adapter.metrics.identity.authentication import AccessControl, OpenPaths
from adapter.metrics.identity.authorization import Authorizer
from adapter.metrics.identity.caller_authorities import CallerCAs, MaterialSettings
from adapter.metrics.identity.callers import AccessForbiddenError, Caller, DeniedError, Via
from adapter.metrics.identity.identity_telemetry import IdentityTelemetry
from adapter.metrics.identity.reviews import review_waiters

if TYPE_CHECKING:
    from collections.abc import Callable

REQUESTED = attributes_of("GET", "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue_depth")
ALICE = Caller("alice", ("system:authenticated",), Via.FRONT_PROXY)


def access_control_with(review: Callable[[Caller, Attributes], ReviewDecision] | None) -> AccessControl:
    telemetry = IdentityTelemetry(CollectorRegistry())
    authorizer = Authorizer(review, lambda _: None, review_waiters(8), telemetry) if review else None
    return AccessControl(CallerCAs(MaterialSettings()), authorizer=authorizer)


def test_access_to_an_unrouted_path_is_reviewed_despite_a_cached_answer() -> None:
    answers = iter([ReviewDecision(allowed=True), ReviewDecision(allowed=False)])
    access_control = access_control_with(lambda _caller, _attributes: next(answers))
    access_control.authorize(ALICE, REQUESTED)

    with pytest.raises(DeniedError):
        access_control.authorize_unrouted(ALICE, REQUESTED)


def test_the_review_is_that_of_a_direct_caller() -> None:
    reviewed: list[Caller] = []

    def review(caller: Caller, _: Attributes) -> ReviewDecision:
        reviewed.append(caller)
        return ReviewDecision(allowed=True)

    access_control_with(review).authorize_unrouted(ALICE, REQUESTED)
    assert [(caller.name, caller.via is Via.FRONT_PROXY) for caller in reviewed] == [("alice", False)]


def test_without_reviews_only_the_front_proxy_is_served() -> None:
    access_control = access_control_with(None)
    access_control.authorize_unrouted(ALICE, REQUESTED)
    with pytest.raises(AccessForbiddenError):
        access_control.authorize_unrouted(replace(ALICE, via=Via.TOKEN), REQUESTED)


@pytest.mark.parametrize("opened", ["/*", "/", "*", ""])
@pytest.mark.parametrize("prefix", ["/apis/external.metrics.k8s.io/v1beta1/namespaces/shop", "/api/v1/namespaces/shop"])
def test_no_setting_opens_the_resources_of_an_api_to_everyone(opened: str, prefix: str) -> None:
    assert not OpenPaths([opened]).hold(attributes_of("GET", f"{prefix}/queue_depth"))
