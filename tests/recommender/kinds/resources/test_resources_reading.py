"""Requests from usage in the configuration: what cannot work is refused when the file is read."""

from __future__ import annotations

import pytest

from tests.recommender.configuration.files import entry, problems_of, whole

JOB = "{apiVersion: batch/v1, kind: CronJob, namespace: shop, name: web}"
TOP = "prometheus: {url: http://127.0.0.1:9}\n"


@pytest.mark.parametrize(
    ("lines", "kind", "expected"),
    [
        ((), "fromUsage: {}", "no targets"),
        (("outputs: [scale]",), "fromUsage: {}, forEach: {}", "the output scale has no effect"),
        (("maxStep: 2",), "fromUsage: {}, forEach: {}", "maxStep is a number of replicas"),
        ((), "fromUsage: {}, forEach: {}, resize: {threshold: 5%}", "`resize` has no effect without the output"),
        ((f"targets: [{JOB}]", "outputs: [resize]"), "fromUsage: {}", "the output resize cannot write"),
        ((), "forEach: {}", "`resources.fromUsage` is missing"),
        ((), "fromUsage: {percentile: 0}, forEach: {}", "0"),
        ((), "fromUsage: {percentile: often}, forEach: {}", "'often' is not auto or a number"),
        ((), "fromUsage: {percentile: 101}, forEach: {}", "write auto, or a number from 1 to 100"),
        ((), "fromUsage: {}, forEach: {kind: Pod}", "Pod"),
        ((), "fromUsage: {}, forEach: {max: 0}", "0"),
        ((), "fromUsage: {}, forEach: {}, min: {cpu: 2}, max: {cpu: 1}", "`max` of cpu is less than `min`"),
        (("targets: []",), "fromUsage: {}, forEach: {}", "targets and forEach"),
        ((), "fromUsage: {cpu: 'sum(up'}, forEach: {}", "no version of Prometheus can parse the query: the ( of"),
    ],
)
def test_settings_that_cannot_work_are_refused_when_read(lines: tuple[str, ...], kind: str, expected: str) -> None:
    problems = problems_of(whole(entry("sizes", *lines, kind=f"resources: {{{kind}}}"), top=TOP))
    assert any(expected in problem for problem in problems), problems


def test_only_requests_can_be_resized() -> None:
    kind = "predictive: {load: up, loadPerReplica: 1, horizon: 1h}"
    problems = problems_of(whole(entry("dns", f"targets: [{JOB}]", "outputs: [resize]", kind=kind), top=TOP))
    assert any("the output resize is for entries with proportional, resources" in problem for problem in problems)


def test_usage_needs_prometheus() -> None:
    problems = problems_of(whole(entry("sizes", kind="resources: {fromUsage: {}, forEach: {}}")))
    assert any("needs Prometheus" in problem for problem in problems)
