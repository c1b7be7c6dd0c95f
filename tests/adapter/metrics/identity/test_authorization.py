"""Answers of the API server are cached by caller until they expire, and renewed in the background."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from adapter.metrics.identity import authorization
from adapter.metrics.identity.attributes import Attributes
from adapter.metrics.identity.authorization import MOST_ANSWERS, AuthorizationSettings
from adapter.metrics.identity.callers import Caller, Via
from tests.adapter.metrics.identity.authorization_harness import DIRECT, GONE, HPA, NO, YES, Harness, Reply
from tests.adapter.metrics.identity.reviewing import in_threads


class TestMemory:
    @pytest.mark.parametrize(
        ("caller", "reply", "seconds"),
        [(HPA, YES, 330.0), (HPA, NO, 5.0), (DIRECT, YES, 20.0), (DIRECT, NO, 5.0)],
    )
    def test_an_answer_is_cached_for_its_ttl_and_no_longer(self, caller: Caller, reply: Reply, seconds: float) -> None:
        harness = Harness(AuthorizationSettings(authorized_seconds=20.0, unauthorized_seconds=5.0))
        harness.reply = reply
        first = harness.allows(caller)
        harness.reply = NO if first else YES
        harness.time.seconds += seconds - 0.1
        assert harness.allows(caller) == first
        assert harness.reviews_sent == 1
        harness.time.seconds += 0.2
        assert harness.allows(caller) != first

    def test_each_caller_and_each_resource_is_reviewed_separately(self) -> None:
        harness = Harness()
        others = [
            Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY, uid="7"),
            Caller("hpa", ("system:authenticated", "a"), Via.FRONT_PROXY),
            Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY, extra={"a": ("b",)}),
            Caller("HPA", ("system:authenticated",), Via.FRONT_PROXY),
            Caller("hpa", ("system:authenticated",), Via.TOKEN),
        ]
        for caller in (HPA, *others):
            for path in ("/apis", "/metrics"):
                assert harness.allows(caller, Attributes("get", path=path))
        assert harness.reviews_sent == 12

    def test_an_answer_for_the_front_proxy_does_not_apply_to_a_direct_caller(self) -> None:
        harness = Harness()
        assert harness.allows(HPA)
        harness.reply = NO
        assert not harness.allows(Caller("hpa", ("system:authenticated",), Via.TOKEN))
        assert harness.allows(HPA)

    def test_a_thousand_requests_at_once_cost_one_review(self) -> None:
        harness = Harness()
        go = threading.Event()

        def answer(_: object) -> dict[str, Any]:
            assert go.wait(20)
            return YES

        harness.server.answer = answer
        threading.Timer(0.2, go.set).start()
        assert in_threads(1000, harness.allows) == [True] * 1000
        assert harness.reviews_sent == 1

    def test_the_number_of_cached_answers_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert MOST_ANSWERS == 100_000
        monkeypatch.setattr(authorization, "MOST_ANSWERS", 50)
        harness = Harness()
        for number in range(60):
            assert harness.allows(HPA, Attributes("get", path=f"/{number}"))
        assert len(harness.authorizer._front_proxy.answers) == 50
        assert harness.allows(HPA, Attributes("get", path="/59"))
        assert harness.reviews_sent == 60

    def test_answers_that_are_over_are_forgotten(self) -> None:
        """Namespaces, metrics and objects come and go, so a process that runs for weeks is asked for ever new names."""
        harness = Harness()
        for number in range(2000):
            harness.reply = NO if number % 2 else YES
            harness.allows(HPA, Attributes("get", resource="pods", name=f"{number}"))
            harness.allows(DIRECT, Attributes("get", resource="pods", name=f"{number}"))
            harness.time.seconds += 1
        assert len(harness.authorizer._front_proxy.answers) <= 601
        assert len(harness.authorizer._direct.answers) <= 11

    def test_an_expired_answer_that_may_still_be_needed_is_not_forgotten(self) -> None:
        """While some reviews fail, others succeed; each of those makes room for its answer."""
        harness = Harness()
        harness.allows()
        harness.time.seconds += 340.0
        assert harness.allows(HPA, Attributes("get", path="/other"))
        harness.reply = GONE
        assert harness.allows()
        assert harness.counted.stale == 1

    def test_the_memory_for_long_names_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Any client with a token can request names of 8,000 characters; 100,000 of them would take all the memory."""
        monkeypatch.setattr(authorization, "MOST_CHARACTERS", 10_000)
        harness = Harness()
        harness.reply = NO
        for number in range(30):
            assert not harness.allows(DIRECT, Attributes("get", resource="pods", name=f"{number:02}{'a' * 1000}"))
            harness.time.seconds += 1
        assert len(harness.authorizer._direct.answers) == 9
        for number in range(9):
            assert not harness.allows(DIRECT, Attributes("get", resource="pods", name=f"{number}"))
        assert len(harness.authorizer._direct.answers) == 18


class TestCredentialsOfOneUser:
    @staticmethod
    def holding(credential: str, via: Via, **more: tuple[str, ...]) -> Caller:
        extra = {"authentication.kubernetes.io/credential-id": (credential,), **more}
        return Caller("hpa", ("system:authenticated",), via, "7", extra)

    def test_a_renewed_token_of_a_front_proxy_caller_needs_no_new_review(self) -> None:
        harness = Harness()
        for number in range(3):
            assert harness.allows(self.holding(f"JTI={number}", Via.FRONT_PROXY))
        assert harness.reviews_sent == 1
        (request,) = harness.server.requests
        assert request["spec"]["extra"] == {"authentication.kubernetes.io/credential-id": ["JTI=0"]}

    def test_a_direct_caller_is_reviewed_for_each_credential(self) -> None:
        harness = Harness()
        assert harness.allows(self.holding("JTI=1", Via.TOKEN))
        harness.reply = NO
        assert not harness.allows(self.holding("JTI=2", Via.TOKEN))

    def test_other_extras_and_the_uid_distinguish_callers(self) -> None:
        harness = Harness()
        assert harness.allows(self.holding("JTI=1", Via.FRONT_PROXY))
        harness.reply = NO
        assert not harness.allows(self.holding("JTI=1", Via.FRONT_PROXY, scopes=("admin",)))
        assert not harness.allows(Caller("hpa", ("system:authenticated",), Via.FRONT_PROXY, "8"))


class TestRenewal:
    def test_an_expired_answer_is_renewed_in_the_background(self) -> None:
        harness = Harness()
        harness.allows()
        harness.time.seconds += 299.0
        assert harness.allows()
        assert harness.scheduled == []
        harness.time.seconds += 2.0
        assert [harness.allows(), harness.allows()] == [True, True]
        assert (harness.reviews_sent, len(harness.scheduled)) == (1, 1)
        harness.run_scheduled()
        assert harness.reviews_sent == 2
        harness.time.seconds += 299.0
        assert harness.allows()
        assert (harness.reviews_sent, harness.scheduled) == (2, [])

    def test_an_answer_stays_good_while_no_thread_can_be_started_for_its_renewal(self) -> None:
        harness = Harness()
        harness.allows()
        harness.can_start_threads = False
        harness.time.seconds += 301.0
        assert harness.allows()
        harness.can_start_threads = True
        harness.time.seconds += 3.1
        assert harness.allows()
        assert len(harness.scheduled) == 1

    def test_a_denied_renewal_takes_effect_at_once(self) -> None:
        harness = Harness()
        harness.allows()
        harness.reply = NO
        harness.time.seconds += 301.0
        assert harness.allows()
        harness.run_scheduled()
        assert not harness.allows()

    def test_requests_wait_for_a_renewal_overdue_by_a_tenth_of_the_ttl(self) -> None:
        harness = Harness()
        harness.allows()
        harness.reply = NO
        harness.time.seconds += 331.0
        assert not harness.allows()
        assert harness.scheduled == []

    def test_a_failed_renewal_is_retried_and_a_late_one_is_not_repeated(self) -> None:
        harness = Harness()
        harness.allows()
        harness.reply = GONE
        harness.time.seconds += 301.0
        assert harness.allows()
        harness.run_scheduled()
        harness.reply = YES
        harness.time.seconds += 3.1
        assert harness.allows()
        harness.time.seconds += 3.1
        assert harness.allows()
        sent = harness.reviews_sent
        assert len(harness.scheduled) == 2
        harness.run_scheduled()
        assert harness.reviews_sent == sent + 1

    def test_direct_callers_and_refusals_are_not_renewed(self) -> None:
        harness = Harness()
        harness.allows(DIRECT)
        harness.reply = NO
        harness.allows()
        harness.time.seconds += 9.9
        harness.allows(DIRECT)
        harness.allows()
        assert harness.scheduled == []

    def test_most_requests_use_an_expired_answer_while_the_server_is_slow(self) -> None:
        harness = Harness()
        many = [Attributes("get", path=f"/{number}") for number in range(16)]
        for attributes in many:
            harness.allows(HPA, attributes)
        harness.time.seconds += 331.0
        end, waiting = threading.Event(), threading.Semaphore(0)

        def answer(_: object) -> dict[str, Any]:
            waiting.release()
            assert end.wait(20)
            return YES

        harness.server.answer = answer
        threads = [threading.Thread(target=harness.allows, args=(HPA, attributes)) for attributes in many[:4]]
        for thread in threads:
            thread.start()
        assert all(waiting.acquire(timeout=20) for _ in threads)
        assert all(harness.allows(HPA, attributes) for attributes in many[4:])
        assert harness.counted.stale == 12
        end.set()
        for thread in threads:
            thread.join(20)
