"""Authorization while the API server does not answer, or refuses access reviews."""

from __future__ import annotations

import logging
import threading
from itertools import pairwise
from typing import Any

import pytest

from adapter.foundation.sources.kubernetes.errors import ForbiddenError as NoRightError
from adapter.foundation.sources.kubernetes.errors import KubernetesError, ServerError, StatusError, UnauthorizedError
from adapter.metrics.identity.attributes import Attributes
from adapter.metrics.identity.authorization import AuthorizationSettings
from adapter.metrics.identity.callers import AccessForbiddenError, Caller, CrowdedError, UnreviewedError
from tests.adapter.metrics.identity.authorization_harness import DIRECT, GONE, HPA, NO, YES, Harness, Reply

NO_RIGHT = NoRightError("403", 403)


class TestWithoutAnAnswer:
    @pytest.mark.parametrize(
        "failure", [GONE, ServerError("500", 500), UnauthorizedError("401", 401), StatusError("422", 422), b"<html>"]
    )
    @pytest.mark.parametrize("caller", [HPA, DIRECT])
    def test_access_that_was_never_reviewed_is_not_granted(self, caller: Caller, failure: Reply) -> None:
        harness = Harness()
        harness.reply = failure
        for _ in range(3):
            with pytest.raises(UnreviewedError):
                harness.allows(caller)

    def test_an_expired_answer_serves_the_front_proxy_for_another_ttl_and_no_longer(self) -> None:
        harness = Harness()
        harness.allows()
        harness.reply = GONE
        harness.time.seconds += 331.0
        assert harness.allows()
        assert harness.counted.stale == 1
        harness.time.seconds += 250.0
        assert harness.allows()
        harness.time.seconds += 25.0
        with pytest.raises(UnreviewedError):
            harness.allows()

    def test_an_expired_answer_does_not_serve_direct_callers(self) -> None:
        harness = Harness()
        harness.allows(DIRECT)
        harness.reply = GONE
        harness.time.seconds += 10.1
        with pytest.raises(UnreviewedError):
            harness.allows(DIRECT)

    def test_an_expired_denial_does_not_become_a_permission(self) -> None:
        harness = Harness()
        harness.reply = NO
        assert not harness.allows()
        harness.reply = GONE
        harness.time.seconds += 11.0
        with pytest.raises(UnreviewedError):
            harness.allows()

    def test_a_new_answer_takes_effect_as_soon_as_the_server_is_back(self) -> None:
        harness = Harness()
        harness.allows()
        harness.reply = GONE
        harness.time.seconds += 331.0
        assert harness.allows()
        harness.reply = NO
        harness.time.seconds += 1.1
        assert not harness.allows()

    def test_a_ttl_of_zero_disables_cached_answers(self) -> None:
        harness = Harness(AuthorizationSettings(front_proxy_seconds=0.0))
        assert [harness.allows(), harness.allows()] == [True, True]
        assert harness.reviews_sent == 2
        harness.reply = GONE
        with pytest.raises(UnreviewedError):
            harness.allows()

    def test_a_review_and_its_retries_end_within_two_seconds(self) -> None:
        harness = Harness()

        def slow(_: object) -> KubernetesError:
            harness.time.seconds += 0.8
            return GONE

        harness.server.answer = slow
        begun = harness.time.seconds
        with pytest.raises(UnreviewedError):
            harness.allows()
        assert harness.time.seconds - begun < 2.8
        assert harness.server.seconds[0] == pytest.approx(2.0)

    def test_no_review_is_sent_for_a_second_after_a_failure(self) -> None:
        harness = Harness()
        harness.reply = GONE
        with pytest.raises(UnreviewedError):
            harness.allows()
        sent = harness.reviews_sent
        with pytest.raises(UnreviewedError):
            harness.allows(HPA, Attributes("get", path="/other"))
        assert harness.reviews_sent == sent

    def test_a_failure_is_logged_once_until_reviews_are_answered_again(self, caplog: pytest.LogCaptureFixture) -> None:
        harness = Harness()
        for outage in (1, 2):
            harness.reply = GONE
            for _ in range(3):
                with pytest.raises(UnreviewedError):
                    harness.allows(DIRECT)
                harness.time.seconds += 1.1
            assert [record.getMessage() for record in caplog.records].count("reviews are not answered") == outage
            harness.reply = YES
            assert harness.allows(DIRECT)
            harness.time.seconds += 10.1

    def test_one_request_at_a_time_tries_again_after_a_failure(self) -> None:
        harness = Harness()
        harness.reply = GONE
        with pytest.raises(UnreviewedError):
            harness.allows()
        harness.time.seconds += 1.1
        sent = harness.reviews_sent

        def answer(_: object) -> Reply:
            with pytest.raises(UnreviewedError):
                harness.allows(HPA, Attributes("get", path="/other"))
            return YES

        harness.server.answer = answer
        assert harness.allows()
        assert harness.reviews_sent == sent + 1
        harness.time.seconds += 1.1
        harness.reply = YES
        assert harness.allows()

    def test_a_refused_review_does_not_stop_other_reviews(self) -> None:
        harness = Harness()
        harness.reply = StatusError("422", 422)
        with pytest.raises(UnreviewedError):
            harness.allows(DIRECT)
        harness.reply = YES
        assert harness.allows()

    def test_only_direct_callers_have_a_limit_of_waiting_threads(self) -> None:
        harness = Harness(most=2)
        end, waiting = threading.Event(), threading.Semaphore(0)

        def answer(_: object) -> dict[str, Any]:
            waiting.release()
            assert end.wait(20)
            return YES

        def request(number: int) -> bool:
            return harness.allows(DIRECT, Attributes("get", path=f"/{number}"))

        harness.server.answer = answer
        threads = [threading.Thread(target=request, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        assert all(waiting.acquire(timeout=20) for _ in range(2))
        with pytest.raises(CrowdedError):
            request(2)
        end.set()
        assert harness.allows(HPA)
        for thread in threads:
            thread.join(20)


class TestWithoutTheRightToReview:
    @pytest.fixture(name="harness")
    def _harness(self) -> Harness:
        harness = Harness(AuthorizationSettings(required=False))
        harness.reply = NO_RIGHT
        return harness

    def test_only_the_front_proxy_is_served_which_is_logged_once(
        self, harness: Harness, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert [harness.allows() for _ in range(5)] == [True] * 5
        with pytest.raises(AccessForbiddenError, match="serves no direct callers"):
            harness.allows(DIRECT)
        warnings = [record.getMessage() for record in caplog.records if "only requests through" in record.getMessage()]
        assert len(warnings) == 1
        assert "system:auth-delegator" in warnings[0]
        assert harness.reviews_sent == 1, "the right is not tried at each request"

    def test_reviews_begin_once_the_right_is_granted(self, harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        assert harness.allows()
        harness.reply = NO
        harness.time.seconds += 31.0
        assert not harness.allows()
        harness.reply = YES
        assert harness.allows(DIRECT)
        logged = [record.getMessage() for record in caplog.records]
        assert logged.count("access reviews are made: direct callers are served too") == 1

    def test_the_right_is_tried_again_with_growing_intervals(self, harness: Harness) -> None:
        sent_at = []
        for _ in range(100):
            before = harness.reviews_sent
            assert harness.allows()
            if harness.reviews_sent > before:
                sent_at.append(harness.time.seconds)
            harness.time.seconds += 1.0
        assert [later - sooner for sooner, later in pairwise(sent_at)] == [1, 2, 4, 8, 16, 30, 30]

    def test_another_failure_is_not_a_missing_right(self, harness: Harness) -> None:
        harness.reply = GONE
        with pytest.raises(UnreviewedError):
            harness.allows()

    def test_no_request_is_served_if_reviews_are_required(self) -> None:
        harness = Harness()
        harness.reply = NO_RIGHT
        for caller, error in ((HPA, UnreviewedError), (DIRECT, AccessForbiddenError)):
            with pytest.raises(error):
                harness.allows(caller)
