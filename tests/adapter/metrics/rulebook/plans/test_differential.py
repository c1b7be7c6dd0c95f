"""Proven plans never differ from the exact query, on random queries and random series in a real Prometheus.

For more trials, and for figures, run `python -m benchmarks.plan_proof`.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import plan_of
from adapter.metrics.rulebook.requests import Asked
from tests.support.plan_trials import (
    CLUSTER_EXTERNAL,
    CONTAINERS,
    EXTERNAL,
    NODES,
    PODS,
    Field,
    Tally,
    WiderRefusedError,
    answer,
    custom_metric,
    difference_of,
    try_template,
)

if TYPE_CHECKING:
    from tests.support.plan_samples import AskedPrometheus

_REQUESTS = 4


@pytest.mark.parametrize(
    ("field", "templates", "seed"),
    [
        *(pytest.param(PODS, 75, seed, id=f"pods-{seed}") for seed in range(8)),
        *(pytest.param(CONTAINERS, 75, seed, id=f"containers-{seed}") for seed in range(2)),
        *(pytest.param(NODES, 75, seed, id=f"nodes-{seed}") for seed in range(2)),
        *(pytest.param(EXTERNAL, 75, seed, id=f"external-{seed}") for seed in range(4)),
        pytest.param(CLUSTER_EXTERNAL, 75, 0, id="external-without-namespaces"),
    ],
)
def test_proven_plans_of_random_queries_give_the_exact_answer(
    prometheus: AskedPrometheus, field: Field, templates: int, seed: int
) -> None:
    random, tally = Random(seed), Tally()
    for template, _ in zip(field.templates(random), range(templates), strict=False):
        try_template(prometheus, field.metric(template), random.sample(field.requesters, _REQUESTS), tally)
    assert not tally.differences, "\n".join(map(str, tally.differences))
    # A generator or a data set that finds nothing to compare would prove nothing.
    assert tally.wide + tally.namespace > templates / 4
    assert tally.with_values > templates / 4


# Each refused plan would give some request another answer than the exact query does.
_WRONG_IF_WIDENED = [
    "topk(1, speed{<<.LabelMatchers>>})",
    "bottomk(1, speed{<<.LabelMatchers>>})",
    'absent(power{rack="x",<<.LabelMatchers>>})',
    'absent_over_time(power{rack="x",<<.LabelMatchers>>}[1m])',
    "speed{<<.LabelMatchers>>} * scalar(speed{<<.LabelMatchers>>})",
    "clamp_max(power{<<.LabelMatchers>>}, scalar(sum(speed{<<.LabelMatchers>>})))",
    "sum by (pod) (speed{<<.LabelMatchers>>})",
    "sum without (namespace) (speed{<<.LabelMatchers>>})",
    "power",
    "sum by (<<.GroupBy>>) (power)",
    'speed{<<.LabelMatchers>>,rack="r1"} or power',
    "power or speed{<<.LabelMatchers>>}",
    "rack_owner and on (rack) speed{<<.LabelMatchers>>}",
    'power unless on () speed{<<.LabelMatchers>>,rack="r2"}',
    'power{<<.LabelMatchers>>} and on () speed{<<.LabelMatchers>>,rack="r1"}',
    'power{<<.LabelMatchers>>} unless ignoring (namespace, pod, rack) speed{<<.LabelMatchers>>,rack="r1"}',
    'label_replace(speed{<<.LabelMatchers>>}, "pod", "web-0", "rack", ".*")',
    'label_join(speed{<<.LabelMatchers>>}, "namespace", "", "rack")',
    'label_replace(sum by (<<.GroupBy>>) (power{<<.LabelMatchers>>}), "x", "$1", "namespace", "(.*)") and on (x) power',
    "sum by (<<.GroupBy>>) (speed{<<.LabelMatchers>>}) / on (namespace, pod) power{<<.LabelMatchers>>}",
    "sum by (<<.GroupBy>>) (speed{<<.LabelMatchers>>}) / ignoring (rack) power{<<.LabelMatchers>>}",
    "sum by (<<.GroupBy>>) (speed{<<.LabelMatchers>>}) / on (namespace, pod) power",
    "sum by (<<.GroupBy>>) (speed{<<.LabelMatchers>>}) unless on (namespace, pod) power",
    "(sum by (<<.GroupBy>>) (speed{<<.LabelMatchers>>}) or power{<<.LabelMatchers>>}) unless on (namespace, pod) power",
    "(power{<<.LabelMatchers>>} * on (<<.GroupBy>>) power{<<.LabelMatchers>>}) and on (namespace, pod) power",
    "speed{<<.LabelMatchers>>} / on (<<.GroupBy>>) sum by (pod) (power)",
    "speed{<<.LabelMatchers>>} * on (rack) group_left (pod) rack_owner",
    "speed{<<.LabelMatchers>>} * on (rack) group_left (namespace, pod) rack_owner",
    "rack_owner * on (rack) group_left (pod) speed{<<.LabelMatchers>>}",
    "rack_owner * on (rack) group_left () speed{<<.LabelMatchers>>}",
    "speed{<<.LabelMatchers>>} * on (rack) group_right () rack_owner",
]


@pytest.mark.parametrize("template", _WRONG_IF_WIDENED)
def test_a_refused_plan_would_give_a_wrong_answer_to_some_request(prometheus: AskedPrometheus, template: str) -> None:
    metric = custom_metric(template)
    assert PlanKind.WIDE not in plan_of(metric).proven
    requests = {asked for asked in PODS.requesters if asked.selector == EVERYTHING}
    assert any(_differs(prometheus, template, asked) for asked in requests)


def _differs(prometheus: AskedPrometheus, template: str, asked: Asked) -> bool:
    try:
        difference, _ = difference_of(prometheus, custom_metric(template), asked, PlanKind.WIDE)
    except WiderRefusedError:
        return False
    return difference is not None


@pytest.mark.parametrize("kind", [PlanKind.WIDE, PlanKind.NAMESPACE, PlanKind.EXACT])
def test_two_samples_for_one_object_show_in_every_plan(prometheus: AskedPrometheus, kind: PlanKind) -> None:
    metric = custom_metric("http_requests_total{<<.LabelMatchers>>}")
    assert kind in plan_of(metric).proven
    values = answer(prometheus, metric, Asked("shop", ("web-0", "web-1"), EVERYTHING), kind)
    assert values is not None
    assert len(values) > len({name for name, _ in values}) > 1


def test_a_wide_query_that_prometheus_refuses_is_reported_as_refused(prometheus: AskedPrometheus) -> None:
    template = "queue_depth{<<.LabelMatchers>>} / ignoring (container, queue, node) queue_depth{<<.LabelMatchers>>}"
    metric = custom_metric(template)
    assert plan_of(metric).kind is PlanKind.WIDE
    asked = Asked("shop", ("web-0",), EVERYTHING)
    with pytest.raises(WiderRefusedError):
        difference_of(prometheus, metric, asked, PlanKind.WIDE)
