"""Rights: what is asked of the API server and how often, what it says, and what holds while it says nothing."""

from __future__ import annotations

import random
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from adapter.identity import authorization
from adapter.identity.access_reviews import PATH, AccessReviews, decode_decision, review_document
from adapter.identity.attributes import Attributes, attributes_of
from adapter.identity.authorization import MOST_ANSWERS, AuthorizationSettings, Authorizer
from adapter.identity.callers import AccessForbiddenError, Caller, CrowdedError, DeniedError, UnreviewedError, Via
from adapter.identity.reviews import ReviewEffects, review_waiters
from adapter.sources.kubernetes.errors import (
    ForbiddenError as NoRightError,
)
from adapter.sources.kubernetes.errors import (
    KubernetesError,
    ServerError,
    StatusError,
    UnauthorizedError,
    UnreachableError,
)
from tests.identity.reviewing import Counted, ScriptedApiServer, Time, in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Said: TypeAlias = "Mapping[str, Any] | bytes | KubernetesError"

YES: dict[str, Any] = {"status": {"allowed": True}}
NO: dict[str, Any] = {"status": {"allowed": False}}
GONE = UnreachableError("gone")
NO_RIGHT = NoRightError("403", 403)
PODS = attributes_of("GET", "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/%2A/M")
HPA = Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY)
DIRECT = Caller("bob", ("system:authenticated",), Via.TOKEN)


class Place:
    """An authorizer; what it renews ahead waits in `soon`."""

    def __init__(self, settings: AuthorizationSettings | None = None, most: int = 8) -> None:
        self.time = Time()
        self.counted = Counted()
        self.says: Said = YES
        self.soon: list[Callable[[], None]] = []
        self.server = ScriptedApiServer(lambda _: self.says)
        self.rebuild(settings or AuthorizationSettings(), self.time.means, most)

    def rebuild(self, settings: AuthorizationSettings, means: ReviewEffects, most: int = 8) -> None:
        reviews = AccessReviews(self.server, self.counted.telemetry, means)
        self.authorizer = Authorizer(
            reviews.review, self.soon.append, review_waiters(most), self.counted.telemetry, settings, means
        )

    @property
    def asked(self) -> int:
        return len(self.server.asked)

    def may(self, caller: Caller = HPA, attributes: Attributes = PODS) -> bool:
        try:
            self.authorizer.require(caller, attributes)
        except DeniedError:
            return False
        return True

    def do_soon(self) -> None:
        while self.soon:
            self.soon.pop()()


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


class TestMemory:
    @pytest.mark.parametrize(
        ("caller", "says", "seconds"),
        [(HPA, YES, 330.0), (HPA, NO, 10.0), (DIRECT, YES, 10.0), (DIRECT, NO, 10.0)],
    )
    def test_an_answer_holds_for_its_time_and_no_longer(self, caller: Caller, says: Said, seconds: float) -> None:
        place = Place()
        place.says = says
        first = place.may(caller)
        place.says = NO if first else YES
        place.time.seconds += seconds - 0.1
        assert place.may(caller) == first
        assert place.asked == 1
        place.time.seconds += 0.2
        assert place.may(caller) != first

    def test_each_caller_and_each_resource_is_asked_for_by_itself(self) -> None:
        place = Place()
        others = [
            Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY, uid="7"),
            Caller("hpa", ("system:authenticated", "a"), Via.FRONT_PROXY),
            Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY, extra={"a": ("b",)}),
            Caller("HPA", ("system:authenticated",), Via.FRONT_PROXY),
            Caller("hpa", ("system:authenticated",), Via.TOKEN),
        ]
        for caller in (HPA, *others):
            for path in ("/apis", "/metrics"):
                assert place.may(caller, Attributes("get", path=path))
        assert place.asked == 12

    def test_what_the_front_proxy_may_is_nothing_that_a_direct_caller_may(self) -> None:
        place = Place()
        assert place.may(HPA)
        place.says = NO
        assert not place.may(Caller("hpa", ("system:authenticated",), Via.TOKEN))
        assert place.may(HPA)

    def test_a_thousand_requests_at_once_cost_one_review(self) -> None:
        place = Place()
        go = threading.Event()

        def answer(_: object) -> dict[str, Any]:
            assert go.wait(20)
            return YES

        place.server.answer = answer
        threading.Timer(0.2, go.set).start()
        assert in_threads(1000, place.may) == [True] * 1000
        assert place.asked == 1

    def test_what_is_remembered_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert MOST_ANSWERS == 100_000
        monkeypatch.setattr(authorization, "MOST_ANSWERS", 50)
        place = Place()
        for number in range(60):
            assert place.may(HPA, Attributes("get", path=f"/{number}"))
        assert len(place.authorizer._front_proxy.answers) == 50
        assert place.may(HPA, Attributes("get", path="/59"))
        assert place.asked == 60

    def test_long_names_are_not_remembered_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever has a token can ask for names of 8,000 characters; 100,000 of them would be all of the memory."""
        monkeypatch.setattr(authorization, "MOST_CHARACTERS", 10_000)
        place = Place()
        place.says = NO
        for number in range(30):
            assert not place.may(DIRECT, Attributes("get", resource="pods", name=f"{number:02}{'a' * 1000}"))
            place.time.seconds += 1
        assert len(place.authorizer._direct.answers) == 9
        for number in range(9):
            assert not place.may(DIRECT, Attributes("get", resource="pods", name=f"{number}"))
        assert len(place.authorizer._direct.answers) == 18


class TestCredentialsOfOneUser:
    @staticmethod
    def holding(credential: str, via: Via, **more: tuple[str, ...]) -> Caller:
        extra = {"authentication.kubernetes.io/credential-id": (credential,), **more}
        return Caller("hpa", ("system:authenticated",), via, "7", extra)

    def test_a_renewed_token_of_the_controller_is_no_new_caller_through_the_front_proxy(self) -> None:
        place = Place()
        for number in range(3):
            assert place.may(self.holding(f"JTI={number}", Via.FRONT_PROXY))
        assert place.asked == 1
        (asked,) = place.server.asked
        assert asked["spec"]["extra"] == {"authentication.kubernetes.io/credential-id": ["JTI=0"]}

    def test_a_direct_caller_is_reviewed_by_its_very_credential(self) -> None:
        place = Place()
        assert place.may(self.holding("JTI=1", Via.TOKEN))
        place.says = NO
        assert not place.may(self.holding("JTI=2", Via.TOKEN))

    def test_nothing_else_is_left_out(self) -> None:
        place = Place()
        assert place.may(self.holding("JTI=1", Via.FRONT_PROXY))
        place.says = NO
        assert not place.may(self.holding("JTI=1", Via.FRONT_PROXY, scopes=("admin",)))
        assert not place.may(Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY, "8"))


class TestManyAutoscalers:
    def test_ten_thousand_cost_at_most_34_reviews_a_second_after_the_first_ones(self) -> None:
        """A simulation of an hour: each asks every 15 seconds, from the same quarter of a minute on."""
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


class TestRenewal:
    def test_an_answer_that_has_expired_is_renewed_beside_the_requests(self) -> None:
        place = Place()
        place.may()
        place.time.seconds += 299.0
        assert place.may()
        assert place.soon == []
        place.time.seconds += 2.0
        assert [place.may(), place.may()] == [True, True]
        assert (place.asked, len(place.soon)) == (1, 1)
        place.do_soon()
        assert place.asked == 2
        place.time.seconds += 299.0
        assert place.may()
        assert (place.asked, place.soon) == (2, [])

    def test_a_renewal_that_is_denied_counts_at_once(self) -> None:
        place = Place()
        place.may()
        place.says = NO
        place.time.seconds += 301.0
        assert place.may()
        place.do_soon()
        assert not place.may()

    def test_after_a_tenth_of_the_time_more_a_request_waits_for_it(self) -> None:
        place = Place()
        place.may()
        place.says = NO
        place.time.seconds += 331.0
        assert not place.may()
        assert place.soon == []

    def test_a_renewal_that_fails_is_tried_again_and_one_that_came_late_is_not_made_twice(self) -> None:
        place = Place()
        place.may()
        place.says = GONE
        place.time.seconds += 301.0
        assert place.may()
        place.do_soon()
        place.says = YES
        place.time.seconds += 3.1
        assert place.may()
        place.time.seconds += 3.1
        assert place.may()
        asked = place.asked
        assert len(place.soon) == 2
        place.do_soon()
        assert place.asked == asked + 1

    def test_direct_callers_and_refusals_are_not_renewed(self) -> None:
        place = Place()
        place.may(DIRECT)
        place.says = NO
        place.may()
        place.time.seconds += 9.9
        place.may(DIRECT)
        place.may()
        assert place.soon == []

    def test_few_requests_wait_for_a_slow_server_where_an_expired_answer_can_be_used(self) -> None:
        place = Place()
        many = [Attributes("get", path=f"/{number}") for number in range(16)]
        for attributes in many:
            place.may(HPA, attributes)
        place.time.seconds += 331.0
        end, waiting = threading.Event(), threading.Semaphore(0)

        def answer(_: object) -> dict[str, Any]:
            waiting.release()
            assert end.wait(20)
            return YES

        place.server.answer = answer
        threads = [threading.Thread(target=place.may, args=(HPA, attributes)) for attributes in many[:4]]
        for thread in threads:
            thread.start()
        assert all(waiting.acquire(timeout=20) for _ in threads)
        assert all(place.may(HPA, attributes) for attributes in many[4:])
        assert place.counted.stale == 12
        end.set()
        for thread in threads:
            thread.join(20)


class TestWithoutAnAnswer:
    @pytest.mark.parametrize(
        "failure", [GONE, ServerError("500", 500), UnauthorizedError("401", 401), StatusError("422", 422), b"<html>"]
    )
    @pytest.mark.parametrize("caller", [HPA, DIRECT])
    def test_nobody_may_what_was_never_reviewed(self, caller: Caller, failure: Said) -> None:
        place = Place()
        place.says = failure
        for _ in range(3):
            with pytest.raises(UnreviewedError):
                place.may(caller)

    def test_an_expired_answer_lets_the_front_proxy_in_for_as_long_again_and_no_longer(self) -> None:
        place = Place()
        place.may()
        place.says = GONE
        place.time.seconds += 331.0
        assert place.may()
        assert place.counted.stale == 1
        place.time.seconds += 250.0
        assert place.may()
        place.time.seconds += 25.0
        with pytest.raises(UnreviewedError):
            place.may()

    def test_it_lets_no_direct_caller_in(self) -> None:
        place = Place()
        place.may(DIRECT)
        place.says = GONE
        place.time.seconds += 10.1
        with pytest.raises(UnreviewedError):
            place.may(DIRECT)

    def test_what_was_denied_stays_so(self) -> None:
        place = Place()
        place.says = NO
        assert not place.may()
        place.says = GONE
        place.time.seconds += 11.0
        with pytest.raises(UnreviewedError):
            place.may()

    def test_an_answer_counts_again_as_soon_as_there_is_one(self) -> None:
        place = Place()
        place.may()
        place.says = GONE
        place.time.seconds += 331.0
        assert place.may()
        place.says = NO
        place.time.seconds += 1.1
        assert not place.may()

    def test_with_a_ttl_of_nothing_nothing_is_let_in_by_memory(self) -> None:
        place = Place(AuthorizationSettings(front_proxy_seconds=0.0))
        assert [place.may(), place.may()] == [True, True]
        assert place.asked == 2
        place.says = GONE
        with pytest.raises(UnreviewedError):
            place.may()

    def test_a_review_has_two_seconds_with_its_tries(self) -> None:
        place = Place()

        def slow(_: object) -> KubernetesError:
            place.time.seconds += 0.8
            return GONE

        place.server.answer = slow
        begun = place.time.seconds
        with pytest.raises(UnreviewedError):
            place.may()
        assert place.time.seconds - begun < 2.8
        assert place.server.seconds[0] == pytest.approx(2.0)

    def test_after_a_failure_the_server_is_left_alone_for_a_second_and_then_asked_once(self) -> None:
        place = Place()
        place.says = GONE
        with pytest.raises(UnreviewedError):
            place.may()
        asked = place.asked
        with pytest.raises(UnreviewedError):
            place.may(HPA, Attributes("get", path="/other"))
        assert place.asked == asked
        place.time.seconds += 1.1
        place.says = YES
        assert place.may()

    def test_a_document_that_is_refused_does_not_keep_others_from_being_asked(self) -> None:
        place = Place()
        place.says = StatusError("422", 422)
        with pytest.raises(UnreviewedError):
            place.may(DIRECT)
        place.says = YES
        assert place.may()

    def test_direct_callers_hold_no_more_threads_than_they_may_and_the_front_proxy_any(self) -> None:
        place = Place(most=2)
        end, waiting = threading.Event(), threading.Semaphore(0)

        def answer(_: object) -> dict[str, Any]:
            waiting.release()
            assert end.wait(20)
            return YES

        def ask(number: int) -> bool:
            return place.may(DIRECT, Attributes("get", path=f"/{number}"))

        place.server.answer = answer
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        assert all(waiting.acquire(timeout=20) for _ in range(2))
        with pytest.raises(CrowdedError):
            ask(2)
        end.set()
        assert place.may(HPA)
        for thread in threads:
            thread.join(20)


class TestWithoutTheRightToAsk:
    @pytest.fixture(name="place")
    def _place(self) -> Place:
        place = Place(AuthorizationSettings(required=False))
        place.says = NO_RIGHT
        return place

    def test_only_the_front_proxy_is_served_and_that_is_said_once(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert [place.may() for _ in range(5)] == [True] * 5
        with pytest.raises(AccessForbiddenError, match="serves no direct callers"):
            place.may(DIRECT)
        said = [record.getMessage() for record in caplog.records if "only requests through" in record.getMessage()]
        assert len(said) == 1
        assert "system:auth-delegator" in said[0]
        assert place.asked == 1, "it is not asked for at each request"

    def test_the_right_is_used_when_it_comes(self, place: Place) -> None:
        assert place.may()
        place.says = NO
        place.time.seconds += 31.0
        assert not place.may()
        place.says = YES
        assert place.may(DIRECT)

    def test_it_is_asked_for_soon_at_first_as_a_server_that_starts_refuses_everybody(self, place: Place) -> None:
        asked_at = []
        for _ in range(100):
            before = place.asked
            assert place.may()
            if place.asked > before:
                asked_at.append(place.time.seconds)
            place.time.seconds += 1.0
        assert [later - sooner for sooner, later in pairwise(asked_at)] == [1, 2, 4, 8, 16, 30, 30]

    def test_another_failure_is_no_lack_of_rights(self, place: Place) -> None:
        place.says = GONE
        with pytest.raises(UnreviewedError):
            place.may()

    def test_where_reviews_were_asked_for_nobody_is_served(self) -> None:
        place = Place()
        place.says = NO_RIGHT
        for caller, error in ((HPA, UnreviewedError), (DIRECT, AccessForbiddenError)):
            with pytest.raises(error):
                place.may(caller)
