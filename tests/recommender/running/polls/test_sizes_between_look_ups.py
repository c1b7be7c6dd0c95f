"""Targets of `forEach` that are written more often than they are looked up."""

from __future__ import annotations

from adapter.foundation.cluster.values.state import Observed
from recommender.decisions.record import TargetReference
from tests.recommender.configuration.files import entry, whole
from tests.recommender.running.polls.writing_loop import WritingHarness

STEP = 2
TARGETS = tuple(TargetReference("apps/v1", "Deployment", f"team-{number:02}", "web") for number in range(16))


def test_max_step_begins_from_the_size_that_was_written_last() -> None:
    sizes = "loadPerReplica: 2, minReplicas: 2, maxReplicas: 40, horizon: 2m, headroom: 0%"
    series = "forEach: {namespace: namespace, name: deployment, max: 100}"
    brakes = ("outputs: [metric, scale]", f"maxStep: {STEP}", "maxChangesPerHour: 4")
    predictive = entry("load", *brakes, kind=f"predictive: {{load: x, {sizes}, {series}}}")
    text = whole(predictive, top="prometheus: {url: 'http://p'}\nstaleAfter: 5m\n")
    harness = WritingHarness(text, {(each.namespace, each.name): each for each in TARGETS}, most_look_ups=4)
    for each in TARGETS:
        harness.put(each, 4)
    process = harness.process()
    for _ in range(12):
        harness.nodes = Observed(60, harness.now)
        harness.owners = {each.namespace: Observed((), harness.now) for each in TARGETS}
        process.poll()
        process.write_for(10)
    assert max(abs(write.after - write.before) for write in harness.writes) <= STEP
    assert {write.target for write in harness.writes} == set(TARGETS)
