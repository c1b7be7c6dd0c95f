"""Kills, outages and lost answers while CapacityBuffers are written and get their former sizes back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.errors import KubernetesError, ServerError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence, Reply
from recommender.outputs.write_attempt import LONGEST_EFFECT_RATIO
from recommender.running.sizes.former_buffers import FormerBuffers
from recommender.running.sizes.size_writers import SizeWriters
from recommender.running.sizes.withdrawn_buffers import Withdrawals
from tests.recommender.running.sizes.size_harness import OWNER, Recording, resolve
from tests.recommender.running.sizes.test_size_writers import NOTHING, OTHER, Harness, configured
from tests.support.apiserver_kinds import CAPACITY_BUFFERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.configuration.recommender_configuration import Configuration
    from tests.support.apiserver_objects import ObjectStore

CONFIGURED: Final = {"reserve": configured(), "other": configured(OTHER), "": NOTHING}
OWN: Final = {"reserve": 2, "other": 1}
FORMER: Final = "tidewatch.io/replicas-before"
OTHERS_BUFFERS: Final = {
    "others": {FORMER: "3", "tidewatch.io/sized-by": "elsewhere/tidewatch-recommender/nodes"},
    "similar": {FORMER: "3", "tidewatch.io/sized-by": f"{OWNER}-2/nodes"},
    "unowned": {FORMER: "3"},
}
NO_FAULTS: Final = ((lambda _method, _path: None), (lambda _path: None))


class KilledError(BaseException):
    """The process ends here."""


class ListedBuffers:
    """A client that lists all CapacityBuffers, with the same faults as other calls."""

    def __init__(self, objects: Recording, store: ObjectStore) -> None:
        self.objects, self.store = objects, store

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:  # noqa: ARG002 - nothing takes time here
        assert path == "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers"
        self.objects.before("GET", path)
        kind = {"kind": "CapacityBufferList", "apiVersion": "autoscaling.x-k8s.io/v1beta1"}
        return Reply({**kind, "items": self.store.listed(CAPACITY_BUFFERS)})


class LateRecording(Recording):
    """Delays the next change if the test says so; its sender gets no answer."""

    is_late = False

    def __init__(self, store: Any, now: Callable[[], float]) -> None:  # noqa: ANN401 - the store of the harness
        super().__init__(store)
        self.now = now
        self.late: list[tuple[float, Callable[[], object]]] = []

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        if self.is_late and fence.permit(fence.seconds):
            self.is_late, permitted = False, Fence(fence.seconds, lambda _seconds: True)
            until = self.now() + LONGEST_EFFECT_RATIO * fence.seconds
            self.late.append((until, lambda: super(LateRecording, self).replace(path, document, permitted)))
            raise UnknownOutcomeError("PUT: sent, but no answer")
        return super().replace(path, document, fence)

    def arrive(self) -> None:
        """Carry out the late changes that may still have an effect, unless the version that they name is outdated.

        Faults apply only to the sender's calls.
        """
        late, self.late = self.late, []
        faults, (self.before, self.after_put) = (self.before, self.after_put), NO_FAULTS
        for until, change in late:
            if self.now() < until:
                with suppress(KubernetesError):
                    change()
        self.before, self.after_put = faults


@dataclass
class Buffers:
    """A process that writes two buffers, as the current configuration says.

    A third buffer is sized by another recommender, and a fourth one by no recommender; a person resizes it.
    """

    harness: Harness = field(default_factory=Harness)
    present: str = ""

    def __post_init__(self) -> None:
        for name, stated in OTHERS_BUFFERS.items():
            one = {"kind": "CapacityBuffer", "metadata": {"annotations": stated}, "spec": {"replicas": 5}}
            self.harness.store.put(CAPACITY_BUFFERS, "shop", name, one)
        self.objects = self.harness.objects = LateRecording(self.harness.store, lambda: self.harness.now)
        self.begin()

    def begin(self) -> None:
        harness = self.harness
        harness.begin()
        harness.withdrawals = Withdrawals()
        harness.writers = SizeWriters(harness.groups, harness.buffers, resolve, harness.withdrawals)
        harness.writers.reconfigured(self.configuration)
        self.former = FormerBuffers(
            objects=ListedBuffers(self.objects, harness.store),
            resolve=resolve,
            fence=Fence(2.0, lambda _seconds: harness.permits),
            owner=OWNER,
            found=harness.withdrawals.add,
            are_configured=lambda: False,
            monotonic=lambda: harness.now,
        )

    @property
    def configuration(self) -> Configuration:
        return CONFIGURED[self.present]

    def reload(self, name: str) -> None:
        self.present = name
        self.harness.writers.reconfigured(self.configuration)

    def poll(self, chunks: int, seconds: float = 10.0) -> None:
        self.harness.now += seconds
        try:
            self.former.step()
            self.harness.poll(self.configuration, chunks=chunks if self.present else None)
        except KilledError:
            self.begin()

    def calm(self, chunks: int) -> None:
        """Stop all failures."""
        self.objects.before, self.objects.after_put = NO_FAULTS
        self.objects.is_late = False
        for _ in range(8):
            self.poll(chunks)
            self.harness.now += 60.0
            self.harness.step()


def fault(buffers: Buffers, kind: str) -> None:
    """Let the next call or the next change fail."""
    errors = {"500": ServerError("500", 500), "killed before": KilledError()}

    def before(_method: str, _path: str) -> None:
        error = errors.pop(kind, None)
        if error is not None:
            raise error

    left = {"unanswered": UnknownOutcomeError("sent, but no answer"), "killed after": KilledError()}

    def after(_path: str) -> None:
        error = left.pop(kind, None)
        if error is not None:
            raise error

    buffers.objects.before, buffers.objects.after_put = before, after
    buffers.objects.is_late = kind == "late"


FAULTS: Final = ("none", "500", "unanswered", "late", "killed before", "killed after")
EVENTS = st.one_of(
    st.tuples(st.just("poll"), st.sampled_from(FAULTS), st.integers(3, 9)),
    st.tuples(st.just("reload"), st.sampled_from(tuple(CONFIGURED)), st.just(0)),
    st.tuples(st.just("arrive"), st.just(""), st.just(0)),
)


def check(buffers: Buffers, chunks: int) -> None:
    for name in OWN:
        one = buffers.harness.store.get_without_rights(CAPACITY_BUFFERS, "shop", name)
        former = one["metadata"].get("annotations", {}).get(FORMER)
        if name == buffers.present:
            assert (one["spec"]["replicas"], former) == (chunks, str(OWN[name]))
        else:
            assert (one["spec"]["replicas"], former) == (OWN[name], None)
    for name, stated in OTHERS_BUFFERS.items():
        one = buffers.harness.store.get_without_rights(CAPACITY_BUFFERS, "shop", name)
        assert (one["spec"]["replicas"], one["metadata"]["annotations"]) == (5, stated), "this process does not own it"


@given(st.lists(EVENTS, min_size=1, max_size=14))
@settings(max_examples=150)
def test_each_buffer_reaches_its_size_and_keeps_its_other_fields_after_any_failures(
    events: list[tuple[str, str, int]],
) -> None:
    buffers = Buffers()
    for what, which, number in events:
        if what == "poll":
            fault(buffers, which)
            buffers.poll(number, seconds=1.0)
        elif what == "reload":
            buffers.reload(which)
        else:
            buffers.objects.arrive()
    buffers.objects.arrive()
    buffers.calm(7)
    check(buffers, 7)


def test_a_buffer_whose_write_arrives_after_it_is_no_longer_sized_gets_its_former_size_back() -> None:
    buffers = Buffers()
    buffers.reload("reserve")
    fault(buffers, "late")
    buffers.poll(7)
    buffers.reload("")
    buffers.poll(0, seconds=1.0)
    buffers.objects.arrive()
    buffers.calm(0)
    check(buffers, 0)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_withdrawal_is_completed_after_any_failure(kind: str) -> None:
    buffers = Buffers()
    buffers.reload("reserve")
    buffers.poll(7)
    buffers.reload("")
    fault(buffers, kind)
    buffers.poll(0)
    buffers.objects.arrive()
    buffers.calm(0)
    check(buffers, 0)
