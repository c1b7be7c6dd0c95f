"""Bearer tokens: their owner by the API server's answer, the validity of this answer, and what happens without one."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from adapter.foundation.sources.kubernetes.errors import (
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

Said: TypeAlias = "Mapping[str, Any] | bytes | KubernetesError"

ALICE = {"username": "alice", "uid": "7", "groups": ["team-a"], "extra": {"scopes": ["a", "b"]}}
SECRET = "s3cr3t-t0ken"
NOBODY: dict[str, Any] = {"status": {"user": {}, "error": f"invalid token {SECRET}"}}


def knows(user: Mapping[str, Any] | None = None, **status: object) -> dict[str, Any]:
    return {"status": {"authenticated": True, "user": user or ALICE, **status}}


class Place:
    def __init__(self, settings: TokenSettings | None = None, most: int = 8) -> None:
        self.time = Time()
        self.counted = Counted()
        self.says: Said = knows()
        self.server = ScriptedApiServer(lambda _: self.says)
        self.tokens = Tokens(
            self.server, self.counted.telemetry, review_waiters(most), settings or TokenSettings(), self.time.means
        )

    def who(self, token: str = SECRET) -> Caller | None:
        return self.tokens.identify([("Authorization", f"Bearer {token}")])


def test_a_token_is_its_users_with_all_that_is_known_of_them() -> None:
    place = Place()
    caller = place.who()
    assert caller == Caller("alice", ("team-a", "system:authenticated"), Via.TOKEN, "7", {"scopes": ("a", "b")})
    assert place.server.asked == [
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": SECRET}}
    ]
    assert place.server.paths == {PATH}
    assert place.counted.tokens("authenticated") == 1


def test_the_anonymous_user_is_not_made_an_authenticated_one() -> None:
    place = Place()
    place.says = knows({"username": "system:anonymous", "groups": ["system:unauthenticated"]})
    caller = place.who()
    assert caller is not None
    assert caller.groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    "says",
    [
        NOBODY,
        {"status": {}},
        {"status": {"authenticated": False, "user": ALICE}},
        {"status": {"authenticated": True, "user": {}}},
        {"status": {"authenticated": True, "user": {"username": "", "groups": ["system:masters"]}}},
    ],
)
def test_whom_the_api_server_does_not_know_is_nobody(says: dict[str, Any]) -> None:
    place = Place()
    place.says = says
    with pytest.raises(UnauthenticatedError) as refused:
        place.who()
    assert SECRET not in str(refused.value)
    assert place.counted.tokens("unauthenticated") == 1


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
    place = Place(TokenSettings(audiences=("tidewatch", "more")))
    place.says = knows(**status)
    if known:
        assert place.who()
    else:
        with pytest.raises(UnauthenticatedError):
            place.who()
    assert place.server.asked[0]["spec"]["audiences"] == ["tidewatch", "more"]


class TestMemory:
    def test_a_review_holds_for_ten_seconds_and_a_revoked_token_no_longer(self) -> None:
        place = Place()
        place.who()
        place.says = NOBODY
        place.time.seconds += 9.9
        assert place.who()
        assert len(place.server.asked) == 1
        place.time.seconds += 0.2
        with pytest.raises(UnauthenticatedError):
            place.who()

    @pytest.mark.parametrize(("cache_seconds", "negative"), [(10.0, 10.0), (2.0, 2.0), (60.0, 10.0)])
    def test_a_refusal_holds_no_longer_than_an_acceptance(self, cache_seconds: float, negative: float) -> None:
        place = Place(TokenSettings(cache_seconds=cache_seconds))
        place.says = NOBODY
        with pytest.raises(UnauthenticatedError):
            place.who()
        place.says = knows()
        place.time.seconds += negative - 0.1
        with pytest.raises(UnauthenticatedError):
            place.who()
        place.time.seconds += 0.2
        assert place.who()

    def test_with_a_ttl_of_nothing_each_request_is_reviewed(self) -> None:
        place = Place(TokenSettings(cache_seconds=0.0))
        assert [place.who(), place.who()]
        assert len(place.server.asked) == 2

    def test_tokens_are_kept_nowhere(self) -> None:
        place = Place()
        place.who()
        assert SECRET.encode() not in b"".join(place.tokens._memory.by_hash)
        assert SECRET not in repr(place.tokens._memory)

    def test_what_is_remembered_is_bounded(self) -> None:
        place = Place()
        place.says = NOBODY
        place.time.means.sleep(0)
        for number in range(MOST_TOKENS + 5):
            place.time.seconds += 0.02
            place.tokens._review_token(b"%d" % number, b"t")
        assert len(place.tokens._memory.by_hash) == MOST_TOKENS

    def test_a_thousand_requests_at_once_cost_one_review(self) -> None:
        place = Place(most=1000)
        asked_once = threading.Event()

        def answer(_: object) -> dict[str, Any]:
            assert asked_once.wait(20)
            return knows()

        place.server.answer = answer
        threading.Timer(0.2, asked_once.set).start()
        results = in_threads(1000, place.who)
        assert {caller.name for caller in results if isinstance(caller, Caller)} == {"alice"}
        assert len(results) == 1000
        assert len(place.server.asked) == 1


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
    def test_nobody_is_somebody(self, failure: KubernetesError | bytes, tries: int) -> None:
        place = Place()
        place.says = failure
        with pytest.raises(UnreviewedError):
            place.who()
        assert len(place.server.asked) == tries
        assert place.counted.tokens("error") == 1

    def test_tries_wait_half_as_long_again_each_time_within_the_deadline(self) -> None:
        place = Place()
        place.says = UnreachableError("gone")
        with pytest.raises(UnreviewedError):
            place.who()
        assert place.time.slept == pytest.approx([0.6, 0.9, 1.35, 2.025])
        assert place.server.seconds[0] == pytest.approx(10.0)
        assert place.server.seconds[-1] == pytest.approx(10.0 - sum(place.time.slept))

    def test_a_slow_server_is_not_tried_beyond_the_deadline(self) -> None:
        place = Place()

        def slow(_: object) -> KubernetesError:
            place.time.seconds += 4.0
            return UnreachableError("slow")

        place.server.answer = slow
        with pytest.raises(UnreviewedError):
            place.who()
        assert len(place.server.asked) == 3
        assert place.server.seconds[-1] < 2.0

    def test_a_server_that_comes_back_within_the_tries_is_heard(self) -> None:
        place = Place()
        answers: list[Said] = [ServerError("503", 503), UnreachableError("gone"), knows()]
        place.server.answer = lambda _: answers.pop(0)
        assert place.who()

    def test_a_throttled_review_waits_as_long_as_it_is_told(self) -> None:
        place = Place()
        answers: list[Said] = [ThrottledError("429", 429, retry_after_seconds=3.0), knows()]
        place.server.answer = lambda _: answers.pop(0)
        assert place.who()
        assert place.time.slept == [3.0]

    def test_for_a_second_after_a_failure_nobody_else_waits_for_the_same(self) -> None:
        place = Place()
        place.says = UnreachableError("gone")
        with pytest.raises(UnreviewedError):
            place.who()
        asked = len(place.server.asked)
        place.says = knows()
        with pytest.raises(UnreviewedError):
            place.who("another")
        assert len(place.server.asked) == asked
        place.time.seconds += 1.1
        assert place.who("another")
        assert place.who()

    def test_what_was_reviewed_before_goes_on_for_its_ten_seconds_and_not_longer(self) -> None:
        place = Place()
        place.who()
        place.says = UnreachableError("gone")
        place.time.seconds += 5.0
        assert place.who()
        place.time.seconds += 5.0
        with pytest.raises(UnreviewedError):
            place.who()

    def test_made_up_tokens_are_reviewed_at_a_bounded_rate(self) -> None:
        place = Place()
        place.says = NOBODY
        begun = place.time.seconds
        for number in range(600):
            with pytest.raises(UnauthenticatedError):
                place.who(f"made-up-{number}")
        assert place.time.seconds - begun == pytest.approx((600 - 100) / 50)

    def test_they_hold_no_more_threads_than_they_may(self) -> None:
        place = Place(most=3)
        end = threading.Event()
        waiting = threading.Semaphore(0)

        def answer(_: object) -> dict[str, Any]:
            waiting.release()
            assert end.wait(20)
            return NOBODY

        place.server.answer = answer
        threads = [threading.Thread(target=in_threads, args=(1, lambda n=n: place.who(f"t{n}"))) for n in range(3)]
        for thread in threads:
            thread.start()
        assert all(waiting.acquire(timeout=20) for _ in range(3))
        with pytest.raises(CrowdedError):
            place.who("another")
        end.set()
        for thread in threads:
            thread.join(20)
        with pytest.raises(UnauthenticatedError):
            place.who("another")

    def test_no_token_reaches_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        for says in (
            NOBODY,
            StatusError(f"POST: 422: spec.token: Invalid value: {SECRET}", 422),
            f"<p>{SECRET}".encode(),
        ):
            place = Place()
            place.says = says
            with pytest.raises((UnauthenticatedError, UnreviewedError)) as refused:
                place.who()
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
def test_what_cannot_be_a_token_is_not_sent_anywhere(token: str) -> None:
    with pytest.raises(UnauthenticatedError) as refused:
        bearer_token([("Authorization", f"Bearer {token}")])
    assert token not in str(refused.value)


def test_two_authorization_headers_are_none() -> None:
    with pytest.raises(UnauthenticatedError, match="more than one"):
        bearer_token([("Authorization", "Bearer a"), ("authorization", "Bearer b")])
