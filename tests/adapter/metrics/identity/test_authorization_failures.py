"""Authorization while the API server does not answer, or refuses access reviews."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest

from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError as NoRightError,
)
from adapter.foundation.sources.kubernetes.errors import (
    KubernetesError,
    ServerError,
    StatusError,
    UnauthorizedError,
)
from adapter.metrics.identity.attributes import Attributes
from adapter.metrics.identity.authorization import AuthorizationSettings
from adapter.metrics.identity.callers import AccessForbiddenError, Caller, CrowdedError, UnreviewedError
from tests.adapter.metrics.identity.authorization_world import DIRECT, GONE, HPA, NO, YES, Place, Said

NO_RIGHT = NoRightError("403", 403)


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
