"""Access reviews: what the API server is asked, how often, and what its answer allows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from adapter.metrics.identity.access_reviews import PATH, decode_decision, review_document
from adapter.metrics.identity.attributes import Attributes
from adapter.metrics.identity.authorization import AuthorizationSettings
from adapter.metrics.identity.callers import Caller, DeniedError, UnreviewedError, Via
from adapter.metrics.identity.reviews import ReviewEffects
from tests.adapter.metrics.identity.authorization_world import DIRECT, GONE, HPA, NO, PODS, Place


class TestWhatIsAsked:
    def test_the_resource_and_all_of_the_caller(self) -> None:
        caller = Caller("alice", ("a", "b"), Via.FRONT_PROXY, "7", {"scopes": ("x", "y")})
        assert review_document(caller, PODS) == {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "alice",
                "groups": ["a", "b"],
                "uid": "7",
                "extra": {"scopes": ["x", "y"]},
                "resourceAttributes": {
                    "namespace": "ns",
                    "verb": "get",
                    "group": "custom.metrics.k8s.io",
                    "version": "v1beta2",
                    "resource": "pods",
                    "subresource": "M",
                    "name": "*",
                },
            },
        }

    def test_a_path_is_asked_as_a_path_and_what_is_empty_is_left_out(self) -> None:
        assert review_document(DIRECT, Attributes("get", path="/metrics"))["spec"] == {
            "user": "bob",
            "groups": ["system:authenticated"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        place = Place()
        assert place.may()
        assert place.server.paths == {PATH}

    @pytest.mark.parametrize(
        ("status", "allowed"),
        [
            ({"allowed": True}, True),
            ({"allowed": True, "reason": "RBAC"}, True),
            ({"allowed": False}, False),
            ({"allowed": True, "denied": True}, False),
            ({"allowed": False, "denied": True}, False),
            ({"allowed": False, "evaluationError": "no such role"}, False),
        ],
    )
    def test_allowed_is_what_the_server_allows_and_does_not_deny(
        self, status: dict[str, Any], *, allowed: bool
    ) -> None:
        place = Place()
        place.says = {"status": status}
        assert place.may() == allowed
        assert place.counted.rights("allowed" if allowed else "denied") == 1

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>",
            b"{}",
            b"[]",
            b'{"kind": "SubjectAccessReview"}',
            b'{"kind": "SubjectAccessReview", "status": {}}',
            b'{"kind": "SubjectAccessReview", "status": {"allowed": "true"}}',
            b'{"kind": "SubjectAccessReview", "status": {"allowed": 1}}',
            b'{"kind": "TokenReview", "status": {"allowed": true}}',
            b'{"status": {"allowed": true}}',
            b"\xff",
        ],
    )
    def test_garbage_allows_nothing(self, body: bytes) -> None:
        with pytest.raises(ValueError):
            decode_decision(body)
        place = Place()
        place.says = body
        with pytest.raises(UnreviewedError):
            place.may()
        assert place.counted.rights("error") == 1

    def test_masters_may_all_without_a_review(self) -> None:
        place = Place()
        place.says = GONE
        for via in (Via.FRONT_PROXY, Via.TOKEN, Via.CLIENT_CERTIFICATE):
            assert place.may(Caller("root", ("system:masters",), via))
        assert place.asked == 0

    def test_a_refusal_is_kubernetes_sentence_with_its_reason_if_there_is_one(self) -> None:
        place = Place()
        place.says = NO
        with pytest.raises(DeniedError) as refused:
            place.authorizer.require(HPA, PODS)
        sentence = 'User "hpa" cannot get resource "pods/M" in API group "custom.metrics.k8s.io" in the namespace "ns"'
        assert refused.value.message == sentence
        place.says = {"status": {"allowed": False, "reason": "RBAC: no such role"}}
        with pytest.raises(DeniedError) as refused:
            place.authorizer.require(DIRECT, PODS)
        assert refused.value.message == sentence.replace("hpa", "bob") + ": RBAC: no such role"


class TestManyAutoscalers:
    def test_ten_thousand_cost_at_most_34_reviews_a_second_after_the_first_ones(self) -> None:
        """An hour is simulated, in which each autoscaler asks every 15 seconds at its own phase."""
        place = Place()
        chance = random.Random(1)
        means = ReviewEffects(clock=lambda: place.time.seconds, sleep=place.time.sleep, uniform=chance.uniform)
        place.rebuild(AuthorizationSettings(), means)
        scale = 20  # every twentieth autoscaler, so that the test is quick
        hpas = [(chance.uniform(0, 15), Attributes("get", path=f"/{number}")) for number in range(10_000 // scale)]
        hpas.sort(key=lambda hpa: hpa[0])
        begun = place.time.seconds
        in_window: list[int] = []
        for turn in range(3600 // 15):
            before = place.asked
            for phase, attributes in hpas:
                place.time.seconds = max(place.time.seconds, begun + turn * 15 + phase)
                assert place.may(HPA, attributes)
                place.do_soon()
            in_window.append(place.asked - before)
        steady = in_window[40:]
        assert sum(steady) * scale / (15 * len(steady)) <= 34
        assert max(steady) * scale / 15 < 100, "they do not come in one burst, which would be 667 a second"
        assert place.counted.stale == 0

    def test_reviews_are_sent_at_200_a_second_after_a_burst_of_400(self) -> None:
        place = Place()
        begun = place.time.seconds
        for number in range(1000):
            assert place.may(HPA, Attributes("get", path=f"/{number}"))
        assert place.time.seconds - begun == pytest.approx((1000 - 400) / 200)

    def test_a_direct_caller_alone_cannot_use_up_what_the_front_proxy_needs(self) -> None:
        place = Place()
        begun = place.time.seconds
        for number in range(300):
            assert place.may(DIRECT, Attributes("get", path=f"/{number}"))
        assert place.time.seconds - begun == pytest.approx((300 - 100) / 50)
        before = place.time.seconds
        assert place.may(HPA)
        assert place.time.seconds == before

    def test_the_first_answer_holds_for_a_random_part_and_those_that_follow_for_all(self) -> None:
        place = Place()
        place.rebuild(
            AuthorizationSettings(), ReviewEffects(clock=lambda: place.time.seconds, uniform=lambda _, most: most / 3)
        )
        assert place.may()
        place.time.seconds += 99.0
        assert place.may()
        assert place.soon == []
        place.time.seconds += 2.0
        assert place.may()
        place.do_soon()
        assert place.asked == 2
        place.time.seconds += 299.0
        assert place.may()
        assert (place.asked, place.soon) == (2, [])
