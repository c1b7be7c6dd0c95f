"""Answers of the API server are cached by caller until they expire, and renewed in the background."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from adapter.metrics.identity import authorization
from adapter.metrics.identity.attributes import Attributes
from adapter.metrics.identity.authorization import MOST_ANSWERS
from adapter.metrics.identity.callers import Caller, Via
from tests.adapter.metrics.identity.authorization_world import DIRECT, GONE, HPA, NO, YES, Place, Said
from tests.adapter.metrics.identity.reviewing import in_threads


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
        """Anybody with a token can ask for names of 8,000 characters; 100,000 of them would take all the memory."""
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
