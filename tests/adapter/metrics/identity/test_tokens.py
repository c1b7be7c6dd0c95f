"""Bearer tokens: their owner by the API server's answer, the validity of this answer, and what happens without one."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from adapter.foundation.sources.kubernetes.errors import (
    AdmissionError,
    ForbiddenError,
    KubernetesError,
    ServerError,
    StatusError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from adapter.metrics.identity.callers import Caller, CrowdedError, UnauthenticatedError, UnreviewedError, Via
from adapter.metrics.identity.reviews import review_waiters
from adapter.metrics.identity.tokens import LONGEST_TOKEN, MOST_TOKENS, PATH, Tokens, TokenSettings, bearer_token
from tests.adapter.metrics.identity.reviewing import Counted, ScriptedApiServer, Time, in_threads

if TYPE_CHECKING:
    from collections.abc import Mapping

Reply: TypeAlias = "Mapping[str, Any] | bytes | KubernetesError"

ALICE = {"username": "alice", "uid": "7", "groups": ["team-a"], "extra": {"scopes": ["a", "b"]}}
SECRET = "s3cr3t-t0ken"
SECONDS_BETWEEN_TOKENS = 1 / 32
"""Short enough for the limit on reviews, and exact in binary."""
UNKNOWN: dict[str, Any] = {"status": {"user": {}, "error": f"invalid token {SECRET}"}}


def authenticated(user: Mapping[str, Any] | None = None, **status: object) -> dict[str, Any]:
    return {"status": {"authenticated": True, "user": user or ALICE, **status}}


class Harness:
    def __init__(self, settings: TokenSettings | None = None, most: int = 8) -> None:
        self.time = Time()
        self.counted = Counted()
        self.reply: Reply = authenticated()
        self.server = ScriptedApiServer(lambda _: self.reply)
        self.tokens = Tokens(
            self.server, self.counted.telemetry, review_waiters(most), settings or TokenSettings(), self.time.effects
        )

    def identify(self, token: str = SECRET) -> Caller | None:
        return self.tokens.identify([("Authorization", f"Bearer {token}")])

    def review_different_tokens(self, count: int) -> None:
        for number in range(count):
            self.time.seconds += SECONDS_BETWEEN_TOKENS
            self.tokens._review_token(b"%d" % number, b"t")


def test_a_token_identifies_its_user_with_uid_groups_and_extras() -> None:
    harness = Harness()
    caller = harness.identify()
    assert caller == Caller("alice", ("team-a", "system:authenticated"), Via.TOKEN, "7", {"scopes": ("a", "b")})
    assert harness.server.requests == [
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": SECRET}}
    ]
    assert harness.server.paths == {PATH}
    assert harness.counted.tokens("authenticated") == 1


def test_the_anonymous_user_is_not_added_to_system_authenticated() -> None:
    harness = Harness()
    harness.reply = authenticated({"username": "system:anonymous", "groups": ["system:unauthenticated"]})
    caller = harness.identify()
    assert caller is not None
    assert caller.groups == ("system:unauthenticated",)


@pytest.mark.parametrize("nothing", [{}, {"groups": None, "extra": None}, {"groups": [], "extra": {}}])
def test_a_user_without_groups_and_extras_is_identified(nothing: dict[str, Any]) -> None:
    harness = Harness()
    harness.reply = authenticated({"username": "bob", **nothing})
    assert harness.identify() == Caller("bob", ("system:authenticated",), Via.TOKEN)


@pytest.mark.parametrize(
    "reply",
    [
        UNKNOWN,
        {"status": {}},
        {"status": {"authenticated": False, "user": ALICE}},
        {"status": {"authenticated": True, "user": {}}},
        {"status": {"authenticated": True, "user": {"username": "", "groups": ["system:masters"]}}},
    ],
)
def test_a_token_unknown_to_the_api_server_is_unauthenticated(reply: dict[str, Any]) -> None:
    harness = Harness()
    harness.reply = reply
    with pytest.raises(UnauthenticatedError) as refused:
        harness.identify()
    assert SECRET not in str(refused.value)
    assert harness.counted.tokens("unauthenticated") == 1


@pytest.mark.parametrize(
    ("status", "known"),
    [
        ({"audiences": ["tidewatch"]}, True),
        ({"audiences": ["other", "tidewatch"]}, True),
        ({"audiences": ["other"]}, False),
        ({"audiences": []}, False),
        ({}, False),
    ],
)
def test_with_audiences_the_answer_must_name_one_of_them(status: dict[str, Any], *, known: bool) -> None:
    harness = Harness(TokenSettings(audiences=("tidewatch", "more")))
    harness.reply = authenticated(**status)
    if known:
        assert harness.identify()
    else:
        with pytest.raises(UnauthenticatedError):
            harness.identify()
    assert harness.server.requests[0]["spec"]["audiences"] == ["tidewatch", "more"]


class TestMemory:
    def test_a_review_is_cached_for_ten_seconds_and_no_longer(self) -> None:
        harness = Harness()
        harness.identify()
        harness.reply = UNKNOWN
        harness.time.seconds += 9.9
        assert harness.identify()
        assert len(harness.server.requests) == 1
        harness.time.seconds += 0.2
        with pytest.raises(UnauthenticatedError):
            harness.identify()

    @pytest.mark.parametrize(("cache_seconds", "negative"), [(10.0, 10.0), (2.0, 2.0), (60.0, 10.0)])
    def test_a_refusal_is_cached_no_longer_than_an_acceptance(self, cache_seconds: float, negative: float) -> None:
        harness = Harness(TokenSettings(cache_seconds=cache_seconds))
        harness.reply = UNKNOWN
        with pytest.raises(UnauthenticatedError):
            harness.identify()
        harness.reply = authenticated()
        harness.time.seconds += negative - 0.1
        with pytest.raises(UnauthenticatedError):
            harness.identify()
        harness.time.seconds += 0.2
        assert harness.identify()

    def test_an_acceptance_is_cached_as_long_as_the_setting_says(self) -> None:
        harness = Harness(TokenSettings(cache_seconds=60.0))
        assert harness.identify()
        harness.reply = UNKNOWN
        harness.time.seconds += 59.9
        assert harness.identify()
        harness.time.seconds += 0.2
        with pytest.raises(UnauthenticatedError):
            harness.identify()

    def test_with_a_ttl_of_zero_each_request_is_reviewed(self) -> None:
        harness = Harness(TokenSettings(cache_seconds=0.0))
        assert [harness.identify(), harness.identify()]
        assert len(harness.server.requests) == 2

    def test_tokens_are_not_kept_in_memory(self) -> None:
        harness = Harness()
        harness.identify()
        assert SECRET.encode() not in b"".join(harness.tokens._memory.accepted)
        assert SECRET not in repr(harness.tokens._memory)

    def test_the_number_of_cached_reviews_is_bounded(self) -> None:
        harness = Harness(TokenSettings(cache_seconds=1000.0))
        harness.review_different_tokens(MOST_TOKENS + 5)
        assert len(harness.tokens._memory.accepted) == MOST_TOKENS

    @pytest.mark.parametrize(("reply", "seconds"), [(UNKNOWN, 10.0), (UNKNOWN, 10_000.0), (authenticated(), 10.0)])
    def test_expired_reviews_leave_the_cache_as_others_enter(self, reply: Reply, seconds: float) -> None:
        harness = Harness(TokenSettings(cache_seconds=seconds))
        for number in range(3):
            harness.identify(f"old-{number}")
        harness.reply = reply
        harness.review_different_tokens(1000)
        held = len(harness.tokens._memory.accepted) + len(harness.tokens._memory.rejected)
        assert held == 10.0 / SECONDS_BETWEEN_TOKENS + (3 if seconds > 10.0 else 0)

    def test_a_thousand_requests_at_once_cost_one_review(self) -> None:
        harness = Harness(most=1000)
        release = threading.Event()

        def answer(_: object) -> dict[str, Any]:
            assert release.wait(20)
            return authenticated()

        harness.server.answer = answer
        threading.Timer(0.2, release.set).start()
        results = in_threads(1000, harness.identify)
        assert {caller.name for caller in results if isinstance(caller, Caller)} == {"alice"}
        assert len(results) == 1000
        assert len(harness.server.requests) == 1


class TestWithoutAnAnswer:
    @pytest.mark.parametrize(
        ("failure", "tries"),
        [
            (UnreachableError("gone"), 5),
            (ServerError("500", 500), 5),
            (ThrottledError("429", 429), 5),
            (UnauthorizedError("401", 401), 1),
            (ForbiddenError("403", 403), 1),
            (StatusError("400", 400), 1),
            (b"<html>", 1),
            (b"{}", 1),
            (b"[]", 1),
            (b'{"kind": "TokenReview"}', 1),
            (b'{"kind": "Status", "status": "Failure"}', 1),
            (b'{"kind": "Status", "status": {"authenticated": true, "user": {"username": "a"}}}', 1),
            (b'{"kind": "TokenReview", "status": {"authenticated": "yes", "user": {"username": "a"}}}', 1),
            (b"\xff\xfe", 1),
        ],
    )
    def test_a_token_that_could_not_be_reviewed_identifies_no_user(
        self, failure: KubernetesError | bytes, tries: int
    ) -> None:
        harness = Harness()
        harness.reply = failure
        with pytest.raises(UnreviewedError):
            harness.identify()
        assert len(harness.server.requests) == tries
        assert harness.counted.tokens("error") == 1

    def test_retries_wait_half_as_long_again_each_time_within_the_deadline(self) -> None:
        harness = Harness()
        harness.reply = UnreachableError("gone")
        with pytest.raises(UnreviewedError):
            harness.identify()
        assert harness.time.slept == pytest.approx([0.6, 0.9, 1.35, 2.025])
        assert harness.server.seconds[0] == pytest.approx(10.0)
        assert harness.server.seconds[-1] == pytest.approx(10.0 - sum(harness.time.slept))

    def test_a_slow_server_is_not_retried_beyond_the_deadline(self) -> None:
        harness = Harness()

        def slow(_: object) -> KubernetesError:
            harness.time.seconds += 4.0
            return UnreachableError("slow")

        harness.server.answer = slow
        with pytest.raises(UnreviewedError):
            harness.identify()
        assert len(harness.server.requests) == 3
        assert harness.server.seconds[-1] < 2.0

    def test_a_server_that_recovers_during_the_retries_is_used(self) -> None:
        harness = Harness()
        answers: list[Reply] = [ServerError("503", 503), UnreachableError("gone"), authenticated()]
        harness.server.answer = lambda _: answers.pop(0)
        assert harness.identify()

    def test_a_throttled_review_waits_as_long_as_retry_after_states(self) -> None:
        harness = Harness()
        answers: list[Reply] = [ThrottledError("429", 429, retry_after_seconds=3.0), authenticated()]
        harness.server.answer = lambda _: answers.pop(0)
        assert harness.identify()
        assert harness.time.slept == [3.0]

    @pytest.mark.parametrize("failure", [UnreachableError("gone"), AdmissionError("a webhook denies all", 403)])
    def test_for_a_second_after_a_failure_other_tokens_fail_at_once(self, failure: KubernetesError) -> None:
        harness = Harness()
        harness.reply = failure
        with pytest.raises(UnreviewedError):
            harness.identify()
        sent = len(harness.server.requests)
        harness.reply = authenticated()
        with pytest.raises(UnreviewedError):
            harness.identify("another")
        assert len(harness.server.requests) == sent
        harness.time.seconds += 1.1
        assert harness.identify("another")
        assert harness.identify()

    def test_a_review_from_before_an_outage_is_used_for_its_ten_seconds_and_no_longer(self) -> None:
        harness = Harness()
        harness.identify()
        harness.reply = UnreachableError("gone")
        harness.time.seconds += 5.0
        assert harness.identify()
        harness.time.seconds += 5.0
        with pytest.raises(UnreviewedError):
            harness.identify()

    def test_made_up_tokens_are_reviewed_at_a_bounded_rate(self) -> None:
        harness = Harness()
        harness.reply = UNKNOWN
        begun = harness.time.seconds
        for number in range(600):
            with pytest.raises(UnauthenticatedError):
                harness.identify(f"made-up-{number}")
        assert harness.time.seconds - begun == pytest.approx((600 - 100) / 50)

    def test_the_number_of_threads_that_wait_for_reviews_is_bounded(self) -> None:
        harness = Harness(most=3)
        end = threading.Event()
        waiting = threading.Semaphore(0)

        def answer(_: object) -> dict[str, Any]:
            waiting.release()
            assert end.wait(20)
            return UNKNOWN

        harness.server.answer = answer
        threads = [
            threading.Thread(target=in_threads, args=(1, lambda n=n: harness.identify(f"t{n}"))) for n in range(3)
        ]
        for thread in threads:
            thread.start()
        assert all(waiting.acquire(timeout=20) for _ in range(3))
        with pytest.raises(CrowdedError):
            harness.identify("another")
        end.set()
        for thread in threads:
            thread.join(20)
        with pytest.raises(UnauthenticatedError):
            harness.identify("another")

    def test_no_token_reaches_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        for reply in (
            UNKNOWN,
            StatusError(f"POST: 422: spec.token: Invalid value: {SECRET}", 422),
            f"<p>{SECRET}".encode(),
        ):
            harness = Harness()
            harness.reply = reply
            with pytest.raises((UnauthenticatedError, UnreviewedError)) as refused:
                harness.identify()
            assert SECRET not in str(refused.value)
        assert caplog.records
        assert SECRET not in "".join(f"{record.getMessage()}{record.__dict__}" for record in caplog.records)


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Bearer abc", b"abc"),
        ("bearer abc", b"abc"),
        ("BEARER  abc ", b"abc"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ],
)
def test_a_token_is_what_follows_bearer(value: str, token: bytes | None) -> None:
    assert bearer_token([("Host", "a"), ("AUTHORIZATION", value)]) == token
    assert bearer_token([]) is None


@pytest.mark.parametrize("token", ["a b", "a\tb", "\xe9", "a\x7f", "x" * (LONGEST_TOKEN + 1)])
def test_an_invalid_token_is_not_sent_to_the_api_server(token: str) -> None:
    with pytest.raises(UnauthenticatedError) as refused:
        bearer_token([("Authorization", f"Bearer {token}")])
    assert token not in str(refused.value)


def test_two_authorization_headers_are_refused() -> None:
    with pytest.raises(UnauthenticatedError, match="more than one"):
        bearer_token([("Authorization", "Bearer a"), ("authorization", "Bearer b")])
