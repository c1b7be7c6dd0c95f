"""A provider as the author of a plugin would write it, over a cloud in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.cluster_size.node_groups.protocol import InstanceState, ProviderInstance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recommender.cluster_size.node_groups.protocol import GroupOptions, ProviderNode

SMALL: dict[str, object] = {
    "metadata": {"labels": {"pool": "small"}},
    "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "58"},
        "allocatable": {"cpu": "3920m", "memory": "15Gi", "pods": "58"},
    },
}


@dataclass
class ExampleGroup:
    """A group of the example; a test replaces single answers."""

    name: str
    machines: list[str] = field(default_factory=list)
    answers: dict[str, object] = field(default_factory=dict)
    changes: list[tuple[str, object]] = field(default_factory=list)
    """The changes that were requested."""
    on_change: Callable[[], object] = lambda: None
    """Called at the end of a change."""

    def _answer(self, method: str, usual: object) -> object:
        found = self.answers.get(method, usual)
        return found() if callable(found) else found

    def id(self) -> str:
        return self._answer("id", self.name)  # type: ignore[return-value]

    def min_size(self) -> int:
        return self._answer("min_size", 0)  # type: ignore[return-value]

    def max_size(self) -> int:
        return self._answer("max_size", 5)  # type: ignore[return-value]

    def target_size(self) -> int:
        return self._answer("target_size", len(self.machines))  # type: ignore[return-value]

    def nodes(self) -> Sequence[ProviderInstance]:
        usual = [ProviderInstance(each, InstanceState.RUNNING) for each in self.machines]
        return self._answer("nodes", usual)  # type: ignore[return-value]

    def template(self) -> Mapping[str, object] | None:
        return self._answer("template", SMALL)  # type: ignore[return-value]

    def price(self) -> float | None:
        return self._answer("price", 0.1)  # type: ignore[return-value]

    def options(self) -> GroupOptions | None:
        return self._answer("options", None)  # type: ignore[return-value]

    def gpu_label(self) -> str:
        return self._answer("gpu_label", "")  # type: ignore[return-value]

    def age_seconds(self) -> float:
        return self._answer("age_seconds", 0.0)  # type: ignore[return-value]

    def increase_size(self, delta: int) -> None:
        self.changes.append(("increase", delta))
        if not 0 < delta <= self.max_size() - self.target_size():
            raise ValueError(f"{delta} more nodes are not possible")
        self.machines += [f"x:///{self.name}-{len(self.changes)}-{number}" for number in range(delta)]
        self.on_change()

    def decrease_target_size(self, delta: int) -> None:
        self.changes.append(("decrease", delta))
        if delta >= 0 or self.target_size() + delta < len(self.machines):
            raise ValueError("only requested nodes can be taken back")
        self.answers["target_size"] = self.target_size() + delta
        self.on_change()

    def delete_nodes(self, nodes: Sequence[ProviderNode]) -> None:
        self.changes.append(("delete", [node.name for node in nodes]))
        if any(node.provider_id not in self.machines for node in nodes):
            raise ValueError("the node is of another group")
        self.machines = [each for each in self.machines if each not in {node.provider_id for node in nodes}]
        self.on_change()


@dataclass
class ExampleProvider:
    """Groups, found by their machines' provider ids."""

    groups: list[ExampleGroup]
    refreshes: int = 0
    closed: bool = False
    on_refresh: Callable[[], object] = lambda: None

    def refresh(self) -> None:
        self.refreshes += 1
        self.on_refresh()

    def node_groups(self) -> Sequence[ExampleGroup]:
        return self.groups

    def node_group_for_node(self, node: ProviderNode) -> ExampleGroup | None:
        return next((group for group in self.groups if node.provider_id in group.machines), None)

    def close(self) -> None:
        self.closed = True


def example() -> ExampleProvider:
    return ExampleProvider([ExampleGroup("small", ["x:///1", "x:///2"]), ExampleGroup("large")])


def raising() -> object:
    raise RuntimeError("no credentials")
