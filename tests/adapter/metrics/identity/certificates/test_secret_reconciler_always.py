"""At every moment, whatever replicas do to each other, each presents a certificate that the API server trusts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.errors import UnreachableError
from tests.adapter.metrics.identity.certificates.keeping_harness import (
    CUSTOM,
    SECRET,
    WANTED,
    Cluster,
    Replica,
    holds,
    verified,
)
from tests.support.apiserver_kinds import APISERVICES, SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cryptography import x509

REPLICAS = 3
_SOON = st.integers(0, 300).map(lambda seconds: timedelta(seconds=seconds))
_LATE = st.integers(0, 40).map(lambda days: timedelta(days=days))
_WHO = st.integers(0, REPLICAS - 1)


@dataclass(frozen=True)
class Between:
    """Another replica looks some times between two calls of one look, and time passes before each."""

    call: int
    other: int
    pause: timedelta
    looks: int


@dataclass(frozen=True)
class Looks:
    """A replica looks; between its calls, others look, time passes, or its connection breaks."""

    who: int
    between: tuple[Between, ...] = ()
    breaks_at: int | None = None


@dataclass(frozen=True)
class Passes:
    time: timedelta


@dataclass(frozen=True)
class Restarts:
    who: int


class Damage(Enum):
    """Damage that is done to the objects by hand."""

    DELETE_SECRET = auto()
    SPOIL_SECRET = auto()
    EMPTY_BUNDLE = auto()


LAG = timedelta(seconds=30)
"""How much later than the others a kube-apiserver may learn of a changed APIService."""
STEPS = st.one_of(
    st.builds(Looks, _WHO),
    st.builds(
        Looks,
        _WHO,
        st.lists(st.builds(Between, st.integers(0, 8), _WHO, _SOON, st.integers(0, 4)), max_size=3).map(tuple),
        st.none() | st.integers(0, 6),
    ),
    st.builds(Passes, _SOON | _LATE),
    st.builds(Restarts, _WHO),
    st.sampled_from(Damage),
)


class Simulation:
    def __init__(self, clock_errors: list[int]) -> None:
        self.cluster = Cluster()
        self.clock_errors = [timedelta(seconds=error) for error in clock_errors]
        self.replicas = [self._replica(who) for who in range(REPLICAS)]
        self.bundles: list[tuple[datetime, str, frozenset[x509.Certificate]]] = []
        """Each published bundle with its time; empty ones, which another writer left, are left out."""
        self.ended: dict[int, datetime] = {}
        """When a replica last had an expired certificate: no client was served then, so no connection was lost."""

    def _replica(self, who: int) -> Replica:
        return Replica(self.cluster, clock_error=self.clock_errors[who])

    def do(self, step: Looks | Passes | Restarts | Damage) -> None:
        match step:
            case Looks():
                self._look(step)
            case Passes(time):
                self.cluster.advance(time)
            case Restarts(who):
                self.replicas[who] = self._replica(who)
            case Damage():
                self._damage(step)

    def _look(self, step: Looks) -> None:
        calls = 0
        busy = False

        def before(_method: str, _path: str) -> None:
            nonlocal calls, busy
            if busy:
                return
            call, calls = calls, calls + 1
            busy = True
            for event in step.between:
                for _ in range(event.looks if event.call == call and event.other != step.who else 0):
                    self.cluster.advance(event.pause)
                    self.replicas[event.other].look()
            busy = False
            self.check()
            if step.breaks_at is not None and call >= step.breaks_at:
                raise UnreachableError("the connection is cut")

        self.cluster.before = before
        self.replicas[step.who].look()
        self.cluster.before = lambda _method, _path: None

    def _damage(self, damage: Damage) -> None:
        store = self.cluster.store
        if damage is Damage.EMPTY_BUNDLE:
            store.change(APISERVICES, "", CUSTOM, lambda one: one["spec"].pop("caBundle", None))
        elif store.find(SECRETS, SECRET.namespace, SECRET.name) is None:
            return
        elif damage is Damage.DELETE_SECRET:
            store.remove(SECRETS, SECRET.namespace, SECRET.name)
        else:
            store.change(SECRETS, SECRET.namespace, SECRET.name, lambda one: one["data"].update({"ca.crt": "AAAA"}))

    def check(self) -> None:
        """Check, with an up-to-date API server and one that lags, that each serving replica is trusted."""
        now = self.cluster.now
        current = {name: self.cluster.published(name) for name in WANTED.apiservices}
        self.bundles += [(now, name, bundle) for name, bundle in current.items() if bundle]
        self.bundles = [one for one in self.bundles if now - one[0] <= LAG or one[2] == current[one[1]]]
        for who, replica in enumerate(self.replicas):
            shown = replica.keeper.shown
            if shown and not holds(shown.certificate, now):
                self.ended[who] = now
            elif shown and replica.opened_at:
                since = max(replica.opened_at, self.ended.get(who, replica.opened_at))
                for seen_at, name, bundle in self.bundles:
                    if seen_at > since:
                        assert verified(shown.certificate, bundle, now), f"{name}, as of {now - seen_at} ago"


@settings(max_examples=60, deadline=None)
@example(clock_errors=[0, 0, 0], steps=[Looks(0), Passes(timedelta(days=90)), Looks(0)])
@given(
    clock_errors=st.lists(st.integers(-300, 300), min_size=REPLICAS, max_size=REPLICAS),
    steps=st.lists(STEPS, max_size=25),
)
def test_every_replica_is_trusted_at_every_moment(
    clock_errors: list[int], steps: list[Looks | Passes | Restarts | Damage]
) -> None:
    simulation = Simulation(clock_errors)
    for step in steps:
        simulation.do(step)
        simulation.check()


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, max_size=15))
def test_replicas_converge_soon_after_any_damage_and_then_change_nothing(
    steps: list[Looks | Passes | Restarts | Damage],
) -> None:
    simulation = Simulation([0] * REPLICAS)
    for step in steps:
        simulation.do(step)
    settle: Callable[[], list[bool]] = lambda: [replica.look().problems == () for replica in simulation.replicas]  # noqa: E731 - used twice below
    for _ in range(4):
        settle()
        simulation.cluster.advance(timedelta(minutes=2))
    version = simulation.cluster.store.version
    assert settle() == [True] * REPLICAS
    assert simulation.cluster.store.version == version
    shown = {replica.serving.certificate for replica in simulation.replicas}
    assert len(shown) == 1
    assert simulation.cluster.content.next is None
    assert simulation.cluster.trusts(simulation.replicas[0].serving)
    assert simulation.cluster.store.find(APISERVICES, "", WANTED.apiservices[0])
