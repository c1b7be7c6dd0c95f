"""Decisions about requests from usage, from a configuration and what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.values.state import Autoscaler, ClusterState, Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.kinds.resources.resources_memory import ResourcesMemory
from recommender.kinds.resources.size_record import ResourceSize, SizeRecord, SizeStatus, WorkloadUsage
from recommender.kinds.resources.workloads import SizedWorkload
from recommender.printed.document import recommendation_list
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.poll_decisions import PollDecisions
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from recommender.decisions.loop import Decided
    from recommender.decisions.record import Record
    from recommender.running.inputs.poll_plan import PollPlan

NOW = 1_800_000_000.0
MIB = 2**20
WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
API = TargetReference("apps/v1", "Deployment", "shop", "api")
TOP = "prometheus: {url: http://127.0.0.1:9}\n"


def plan(*lines: str, kind: str = "fromUsage: {}, forEach: {namespaces: [shop]}") -> PollPlan:
    configuration = read_configuration(whole(entry("sizes", *lines, kind=f"resources: {{{kind}}}"), top=TOP), "r.yaml")
    assert not configuration.refused, configuration.refused
    return plan_of(configuration)


def size(target: int, request: int | None = None) -> ResourceSize:
    return ResourceSize(request, None, target // 2, target, target * 2, None, None, None, None)


def usage(cpu: int = 300, memory: int = 400 * MIB, **changes: Any) -> WorkloadUsage:  # noqa: ANN401 - fields
    record = SizeRecord(
        SizedWorkload("shop", "Deployment", "web"), "app", SizeStatus.OK, "", 2, 86_400.0, 288, 0,
        size(cpu, 1000), size(memory, 1024 * MIB),
    )  # fmt: skip
    return WorkloadUsage((replace(record, **changes),))


def cluster(*autoscalers: Autoscaler) -> ClusterState:
    return ClusterState(autoscalers={"shop": Observed(autoscalers, NOW)})


def hpa(*resources: str, name: str = "web") -> Autoscaler:
    return Autoscaler("shop", name, {}, "apps/v1", "Deployment", name, 1, 9, None, None, (), resources)


def inputs(found: dict[TargetReference, Any] | Unknown, state: ClusterState | None = None) -> Inputs:
    observed: Any = (
        found
        if isinstance(found, Unknown)
        else {target: each if isinstance(each, Unknown) else Observed(each, NOW) for target, each in found.items()}
    )
    return Inputs(state or cluster(), usage={"sizes": observed})


def decided(followed: PollPlan, given: Inputs, memory: Memory | None = None) -> list[Record]:
    found = decided_after(followed, given, memory)
    return [decision.record for each in found for decision in each.decisions]


def decided_after(followed: PollPlan, given: Inputs, memory: Memory | None) -> list[Decided]:
    memories = Memories(ProcessMemoryStore())
    if memory is not None:
        shards = {name: each.shards for name, each in followed.for_each.items()}
        for name in memories.begin(("sizes",), 1.0, shards):
            memories.load(name)
        memories.remember("sizes", Memory(by_target={WEB: memory}))
    return list(PollDecisions(memories, Clock()).decide(followed, given, NOW))


def item_of(record: Record) -> dict[str, Any]:
    items: Any = recommendation_list([record], NOW)["items"]
    found: dict[str, Any] = items[0]
    return found


def requests(record: Record) -> dict[str, str]:
    found: dict[str, str] = item_of(record)["resources"]["app"]["requests"]
    return found


def last(cpu: int, memory: int = 400 * MIB) -> Memory:
    own = ResourcesMemory(sizes={"app": {"cpu": cpu, "memory": memory}})
    return Memory(LastValue(None, NOW - 10, NOW - 10), own=own)
