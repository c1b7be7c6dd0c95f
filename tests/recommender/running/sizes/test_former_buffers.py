"""The leader looks for buffers that a former process has sized, first when it begins and then at intervals."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.resources import Resource, UnknownResourceError
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, ServerError
from adapter.foundation.sources.kubernetes.writing import Fence, Reply
from recommender.kinds.cluster_size.model.size_settings import BufferSettings
from recommender.running.sizes.former_buffers import LOOK_SECONDS, FormerBuffers
from tests.recommender.running.sizes.size_harness import OWNER, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

LEFT = {"tidewatch.io/replicas-before": "", "tidewatch.io/sized-by": f"{OWNER}/nodes"}


@dataclass
class Looking:
    """A process that looks for buffers, and its results."""

    leads: bool = True
    configured: bool = True
    now: float = 0.0
    error: Exception | None = None
    looks: int = 0
    found: list[Mapping[BufferSettings, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.buffers = FormerBuffers(
            objects=self,
            resolve=self.resolve,
            fence=Fence(2.0, lambda _seconds: self.leads),
            owner=OWNER,
            found=self.found.append,
            are_configured=lambda: self.configured,
            monotonic=lambda: self.now,
        )

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:  # noqa: ARG002 - as the protocol has it
        self.looks += 1
        if self.error is not None:
            raise self.error
        one = {"metadata": {"namespace": "shop", "name": "reserve", "annotations": LEFT}, "spec": {"replicas": 7}}
        return Reply({"kind": "CapacityBufferList", "apiVersion": "autoscaling.x-k8s.io/v1beta1", "items": [one]})

    def resolve(self, group: str, name: str) -> Resource:
        if isinstance(self.error, UnknownResourceError):
            raise self.error
        return resolve(group, name)

    def after(self, seconds: float) -> int:
        """Take a step after some seconds, and return the total number of looks."""
        self.now += seconds
        self.buffers.step()
        return self.looks


def test_the_leader_looks_for_buffers_at_once_and_then_periodically() -> None:
    harness = Looking()
    assert [harness.after(0.0), harness.after(1.0), harness.after(LOOK_SECONDS)] == [1, 1, 2]
    assert harness.found == [{BufferSettings("shop", "reserve"): "nodes"}] * 2


def test_a_follower_looks_for_buffers_each_time_it_becomes_leader() -> None:
    harness = Looking(leads=False)
    assert harness.after(1.0) == 0
    harness.leads = True
    assert harness.after(1.0) == 1
    harness.leads = False
    assert harness.after(1.0) == 1
    harness.leads = True
    assert harness.after(1.0) == 2, "another process may have led, and been killed"


def test_a_failed_look_is_retried_soon() -> None:
    harness = Looking(error=ServerError("500", 500))
    harness.after(0.0)
    harness.error = None
    assert (harness.after(1.0), harness.after(30.0), len(harness.found)) == (1, 2, 1)


@pytest.mark.parametrize("configured", [False, True])
def test_a_missing_right_is_logged_once_if_buffers_are_configured(
    caplog: pytest.LogCaptureFixture, *, configured: bool
) -> None:
    caplog.set_level(logging.INFO)
    harness = Looking(configured=configured, error=ForbiddenError("GET: 403", 403))
    harness.after(0.0)
    harness.after(LOOK_SECONDS)
    expected = "CapacityBuffers that an earlier configuration sized are not looked for: GET: 403"
    assert caplog.messages == [expected] * configured
    assert harness.looks == 1, "nothing is asked again and again that is forbidden"


def test_nothing_is_logged_if_the_cluster_has_no_capacity_buffers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    harness = Looking(error=UnknownResourceError("no kind"))
    assert (harness.after(0.0), caplog.messages) == (0, [])
