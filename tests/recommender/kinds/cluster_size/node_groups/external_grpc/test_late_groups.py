"""A group of a gRPC provider that has not answered is queried again in the background."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc

from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups
from recommender.kinds.cluster_size.node_groups.external_grpc.provider import ExternalGrpcProvider
from tests.recommender.kinds.cluster_size.node_groups.external_grpc.harnesses import served
from tests.support.grpc_provider import CloudGroup, GrpcProvider, ProviderFaultError
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.cluster_size.model.size_settings import ProviderSettings
    from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost
    from recommender.kinds.cluster_size.wire import external_grpc_pb2 as wire


def test_a_group_that_did_not_answer_delays_no_further_decision_and_comes_back() -> None:
    provider, released = GrpcProvider(CloudGroup("odd"), CloudGroup("good")), threading.Event()
    asked: list[str] = []

    def answer(request: wire.GroupRequest) -> object:
        if request.id == "odd":
            asked.append(request.id)
            if len(asked) == 1:
                raise ProviderFaultError("too late", grpc.StatusCode.DEADLINE_EXCEEDED)
            released.wait(60.0)
        return provider.usual("NodeGroupTargetSize", request)

    provider.instead = {"NodeGroupTargetSize": answer}
    # A read that waited for the group would have no answer: its calls end after a minute, and the host waits for half.
    with served(provider, 60.0) as host:
        for _ in range(3):
            problems = {group.name: group.problem for group in host.read(()).groups}
            assert problems["good"] == ""
            assert "DEADLINE_EXCEEDED: too late" in problems["odd"]
        assert len(asked) <= 2, "one question is under way at a time"
        released.set()
        until(lambda: not any(group.problem for group in host.read(()).groups))


@contextmanager
def late_at_first(now: list[float], asked: list[float]) -> Iterator[tuple[GrpcProvider, PluginHost]]:
    """Run a provider whose group does not answer the first call; the next one is answered in the background."""
    provider = GrpcProvider(CloudGroup("odd", target=3))

    def answer(request: wire.GroupRequest) -> object:
        asked.append(now[0])
        if len(asked) == 1:
            raise ProviderFaultError("too late", grpc.StatusCode.DEADLINE_EXCEEDED)
        return provider.usual("NodeGroupTargetSize", request)

    def load(stated: ProviderSettings) -> ExternalGrpcProvider:
        assert isinstance(stated, ExternalGrpcGroups)
        return ExternalGrpcProvider(stated, clock=lambda: now[0])

    provider.instead = {"NodeGroupTargetSize": answer}
    with served(provider, load=load) as host:
        assert host.read(()).groups[0].problem
        until(lambda: len(provider.made("NodeGroupNodes")) == 1)
        yield provider, host


def test_an_answer_in_the_background_is_as_old_as_its_request() -> None:
    now = [0.0]
    with late_at_first(now, []) as (_, host):
        now[0] = 15.0
        (late,) = until(lambda: [each for each in host.read(()).groups if not each.problem])
        assert late.age_seconds == 15.0
        assert host.read(()).groups[0].age_seconds == 0.0


def test_an_answer_in_the_background_that_is_too_old_is_requested_again() -> None:
    now, asked = [0.0], list[float]()
    with late_at_first(now, asked) as (provider, host):
        now[0] = 30.0
        provider.groups["odd"].target = 5
        until(lambda: not host.read(()).groups[0].problem)
        assert host.read(()).groups[0].target_size == 5
    assert 30.0 in asked


def test_a_group_that_answers_again_comes_back_even_if_decisions_are_a_minute_apart() -> None:
    now = [0.0]
    with late_at_first(now, []) as (_, host):
        until(lambda: _has_answered(now, host))


def _has_answered(now: list[float], host: PluginHost) -> bool:
    now[0] += 60.0
    return not host.read(()).groups[0].problem
