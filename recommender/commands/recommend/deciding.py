"""Makes one decision for each recommendation, from known inputs and without a memory."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.commands.recommend.history_inputs import QUERY_SECONDS
from recommender.configuration.needs import needs_of_one, queries_of
from recommender.decisions.inputs import ConfigMapData, Inputs
from recommender.decisions.policy_settings import Output
from recommender.running.inputs.input_gathering import by_backend
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.queries.backend_queries import BackendConnection, queries_to

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.record import Record, TargetReference
    from recommender.kinds.kind import Recommendation

_QUERIES_AT_ONCE = 8


def with_defaults(recommendation: Recommendation, inputs: Inputs) -> tuple[Recommendation, Inputs]:
    """Return both arguments as if a missing ConfigMap had been created with its defaults, which a note mentions."""
    for (namespace, name), default in needs_of_one(recommendation).config_maps.items():
        found = inputs.config_maps.get((namespace, name))
        if default is None or not isinstance(found, Observed) or found.value is not None:
            continue
        missing = f"the ConfigMap {namespace}/{name} does not exist: these are the default parameters"
        note = "; ".join(filter(None, (recommendation.policy.note, missing)))
        created: Observed[ConfigMapData | None] = Observed(ConfigMapData(default, ""), found.time)
        recommendation = replace(recommendation, policy=replace(recommendation.policy, note=note))
        inputs = replace(inputs, config_maps={**inputs.config_maps, (namespace, name): created})
    return recommendation, inputs


def with_query_values(
    configuration: Configuration, connections: Mapping[str, BackendConnection], inputs: Inputs
) -> Inputs:
    """Return the inputs with the value of each query; no query takes long, or waits for another backend."""
    wanted = sorted(queries_of(configuration), key=lambda each: (each.backend, each.text))
    if not wanted:
        return inputs
    backends = {each.backend for each in wanted}
    with queries_to(connections, QUERY_SECONDS) as queries, ExitStack() as stack:
        threads = {each: stack.enter_context(ThreadPoolExecutor(_QUERIES_AT_ONCE)) for each in backends}
        asked = [
            threads[each.backend].submit(queries.of(each.backend, each.source).value, each.text) for each in wanted
        ]
        found = by_backend({each: answer.result() for each, answer in zip(wanted, asked, strict=True)})
    return replace(inputs, queries=found.pop("", {}), queries_elsewhere=found)


def targets_scaled_by_series(
    configuration: Configuration, loads: Mapping[str, LoadInputs | Unknown]
) -> frozenset[TargetReference]:
    """Return the targets that series name and that should be scaled, whose current sizes a decision needs."""
    found = (loads.get(name) for name in configuration.names_with(Output.SCALE))
    return frozenset(target for load in found if isinstance(load, Mapping) for target in load if target is not None)


def records_of(configuration: Configuration, inputs: Inputs, now: float) -> list[Record]:
    """Return the records in the order of the file; with `forEach`, one for each target."""
    lines = {each.policy.name: each.line for each in configuration.recommendations}
    recommendations = []
    for each in configuration.recommendations:
        recommendation, inputs = with_defaults(each, inputs)
        once = replace(recommendation.policy, decides_once=True)
        recommendations.append(replace(recommendation, policy=once))
    plan = plan_of(replace(configuration, recommendations=tuple(recommendations)))
    decided = PollDecisions(Memories(ProcessMemoryStore()), Clock()).decide(plan, inputs, now)
    found = [(lines[each.name], decision.record) for each in decided for decision in each.decisions]
    found += [(each.line, each.record(now)) for each in configuration.refused]
    return [record for _, record in sorted(found, key=lambda item: item[0])]
