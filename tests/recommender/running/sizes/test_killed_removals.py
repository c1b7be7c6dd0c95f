"""Removals of nodes by processes that are killed at any write, while the provider shows sizes late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from recommender.cluster_size.node_groups.protocol import OutcomeUnknownError
from tests.recommender.running.sizes.provider_harness import ProviderHarness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.writing import Fence

LEAST: Final = 1
NODES: Final = ("n1", "n2")
LATEST: Final = 100
"""The longest delay in seconds with which the provider shows a size."""


class KilledError(BaseException):
    """The process ends here."""


@dataclass
class KilledRemovals:
    """A process that removes nodes, and is started again whenever it is killed."""

    lag: int
    harness: ProviderHarness = field(default_factory=lambda: ProviderHarness(now=100_000.0))
    sizes: list[int] = field(default_factory=list)
    """The size of the group in each second."""
    kill: str = ""

    def __post_init__(self) -> None:
        harness, self.put = self.harness, self.harness.api.replace
        harness.group.answers |= {"min_size": LEAST, "target_size": self.shown}
        harness.group.on_change = self.changed
        harness.api.replace = self.replace  # type: ignore[method-assign]
        harness.begin()

    def shown(self) -> int:
        """Return the size that the provider shows."""
        past = [len(NODES), *self.sizes, len(self.harness.group.machines)]
        return past[-1 - min(self.lag, len(past) - 1)]

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        if self.kill == "before":
            raise KilledError
        answer = self.put(path, document, fence)
        if self.kill == "after":
            raise KilledError
        return answer

    def changed(self) -> None:
        """End the process once the provider has deleted a machine, so that it can write nothing more."""
        if self.kill == "provider":
            self.harness.permits = False
            raise OutcomeUnknownError("the process ends")

    def later(self, seconds: int, kill: str = "") -> None:
        """Let time pass, and kill the process at most once."""
        self.kill = kill
        for _ in range(seconds):
            self.sizes.append(len(self.harness.group.machines))
            try:
                self.harness.later(1)
            except KilledError:
                self.begin()
            if not self.harness.permits:
                self.begin()

    def begin(self) -> None:
        self.kill, self.harness.permits = "", True
        self.harness.begin()

    def remove(self, name: str, kill: str) -> None:
        """Decide a removal, based on the size that is shown."""
        shown, self.kill = self.shown(), kill if kill != "provider" else ""
        try:
            self.harness.resize(shown - 1, name, known=shown)
        except KilledError:
            self.begin()


KILLS: Final = st.sampled_from(("", "before", "after", "provider"))
EVENTS = st.one_of(
    st.tuples(st.just("remove"), st.sampled_from(NODES), KILLS),
    st.tuples(st.just("later"), st.integers(1, 130), KILLS),
)


@example(LATEST, [("remove", "n1", ""), ("remove", "n2", ""), ("later", 10, "provider"), ("later", 60, "")])
@example(LATEST, [("remove", "n1", ""), ("remove", "n2", ""), ("later", 10, "after"), ("later", 60, "")])
@given(st.integers(0, LATEST), st.lists(EVENTS, min_size=1, max_size=6))
@settings(max_examples=60)
def test_kills_at_any_write_repeat_no_deletion_and_leave_no_node_cordoned(
    lag: int, events: list[tuple[str, Any, str]]
) -> None:
    removals = KilledRemovals(lag)
    harness = removals.harness
    for what, which, kill in events:
        if what == "remove":
            removals.remove(which, kill)
        else:
            removals.later(which, kill)
        assert len(harness.group.machines) >= LEAST
    removals.later(1000)
    deleted = [name for _, names in harness.group.changes for name in names]  # type: ignore[attr-defined]
    assert len(deleted) == len({*deleted}), "deletion requested twice"
    assert len(harness.group.machines) == len(NODES) - len(deleted) >= LEAST
    assert [name for name in NODES if name not in deleted and not harness.is_usable(name)] == []
    assert {one["metadata"]["annotations"]["own"] for one in harness.api.nodes.values()} == {"1"}
