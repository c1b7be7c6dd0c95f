"""Access reviews: what the API server is sent, how often, and what its answer allows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from adapter.metrics.identity.access_reviews import PATH, decode_decision, review_document
from adapter.metrics.identity.attributes import Attributes
from adapter.metrics.identity.authorization import AuthorizationSettings
from adapter.metrics.identity.callers import Caller, DeniedError, UnreviewedError, Via
from adapter.metrics.identity.reviews import ReviewEffects
from tests.adapter.metrics.identity.authorization_harness import DIRECT, GONE, HPA, NO, PODS, Harness


class TestReviewContents:
    def test_a_review_contains_the_resource_and_the_whole_caller(self) -> None:
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

    def test_a_path_is_reviewed_as_a_path_and_empty_fields_are_left_out(self) -> None:
        assert review_document(DIRECT, Attributes("get", path="/metrics"))["spec"] == {
            "user": "bob",
            "groups": ["system:authenticated"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        harness = Harness()
        assert harness.allows()
        assert harness.server.paths == {PATH}

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
    def test_access_is_allowed_if_the_server_allows_and_does_not_deny_it(
        self, status: dict[str, Any], *, allowed: bool
    ) -> None:
        harness = Harness()
        harness.reply = {"status": status}
        assert harness.allows() == allowed
        assert harness.counted.rights("allowed" if allowed else "denied") == 1

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
        harness = Harness()
        harness.reply = body
        with pytest.raises(UnreviewedError):
            harness.allows()
        assert harness.counted.rights("error") == 1

    def test_system_masters_are_allowed_everything_without_a_review(self) -> None:
        harness = Harness()
        harness.reply = GONE
        for via in (Via.FRONT_PROXY, Via.TOKEN, Via.CLIENT_CERTIFICATE):
            assert harness.allows(Caller("root", ("system:masters",), via))
        assert harness.reviews_sent == 0

    def test_a_long_reason_is_cut_off(self) -> None:
        reply = b'{"kind": "SubjectAccessReview", "status": {"allowed": false, "reason": "%b"}}' % (b"r" * 300_000)
        assert decode_decision(reply).reason == "r" * 256

    def test_a_refusal_has_the_wording_of_kubernetes_and_the_reason_if_any(self) -> None:
        harness = Harness()
        harness.reply = NO
        with pytest.raises(DeniedError) as refused:
            harness.authorizer.require(HPA, PODS)
        sentence = (
            'pods.custom.metrics.k8s.io "*" is forbidden: '
            'User "hpa" cannot get resource "pods/M" in API group "custom.metrics.k8s.io" in the namespace "ns"'
        )
        assert refused.value.message == sentence
        harness.reply = {"status": {"allowed": False, "reason": "RBAC: no such role"}}
        with pytest.raises(DeniedError) as refused:
            harness.authorizer.require(DIRECT, PODS)
        assert refused.value.message == sentence.replace("hpa", "bob") + ": RBAC: no such role"


class TestManyAutoscalers:
    def test_ten_thousand_autoscalers_cost_at_most_34_reviews_a_second_after_warm_up(self) -> None:
        """An hour is simulated, in which each autoscaler sends a request every 15 seconds at its own phase."""
        harness = Harness()
        chance = random.Random(1)
        effects = ReviewEffects(clock=lambda: harness.time.seconds, sleep=harness.time.sleep, uniform=chance.uniform)
        harness.rebuild(AuthorizationSettings(), effects)
        scale = 20  # every twentieth autoscaler, so that the test is quick
        hpas = [(chance.uniform(0, 15), Attributes("get", path=f"/{number}")) for number in range(10_000 // scale)]
        hpas.sort(key=lambda hpa: hpa[0])
        begun = harness.time.seconds
        in_window: list[int] = []
        for turn in range(3600 // 15):
            before = harness.reviews_sent
            for phase, attributes in hpas:
                harness.time.seconds = max(harness.time.seconds, begun + turn * 15 + phase)
                assert harness.allows(HPA, attributes)
                harness.run_scheduled()
            in_window.append(harness.reviews_sent - before)
        steady = in_window[40:]
        assert sum(steady) * scale / (15 * len(steady)) <= 34
        assert max(steady) * scale / 15 < 100, "they do not come in one burst, which would be 667 a second"
        assert harness.counted.stale == 0

    def test_reviews_are_sent_at_200_a_second_after_a_burst_of_400(self) -> None:
        harness = Harness()
        begun = harness.time.seconds
        for number in range(1000):
            assert harness.allows(HPA, Attributes("get", path=f"/{number}"))
        assert harness.time.seconds - begun == pytest.approx((1000 - 400) / 200)

    def test_a_direct_caller_cannot_use_up_the_reviews_of_the_front_proxy(self) -> None:
        harness = Harness()
        begun = harness.time.seconds
        for number in range(300):
            assert harness.allows(DIRECT, Attributes("get", path=f"/{number}"))
        assert harness.time.seconds - begun == pytest.approx((300 - 100) / 50)
        before = harness.time.seconds
        assert harness.allows(HPA)
        assert harness.time.seconds == before

    def test_the_first_answer_is_cached_for_a_random_part_of_the_ttl_and_later_ones_for_all(self) -> None:
        harness = Harness()
        harness.rebuild(
            AuthorizationSettings(), ReviewEffects(clock=lambda: harness.time.seconds, uniform=lambda _, most: most / 3)
        )
        assert harness.allows()
        harness.time.seconds += 99.0
        assert harness.allows()
        assert harness.scheduled == []
        harness.time.seconds += 2.0
        assert harness.allows()
        harness.run_scheduled()
        assert harness.reviews_sent == 2
        harness.time.seconds += 299.0
        assert harness.allows()
        assert (harness.reviews_sent, harness.scheduled) == (2, [])
