"""Entries with `predictive:`: what they need besides their own keys, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import ClusterNeeds
from recommender.configuration.needs import needs_of, needs_of_one, queries_of, sizing_queries_of
from recommender.configuration.reading import read_configuration
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from tests.recommender.configuration.files import TARGET, entry, problems_of, whole

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration

PROMETHEUS = "prometheus: {url: 'http://p'}\n"
RUNNING = "load: sum(x), loadPerReplica: 10, horizon: 2m, maxReplicas: 50"
LEAST = f"predictive: {{{RUNNING}}}"
EACH = f"predictive: {{{RUNNING}, forEach: {{namespace: ns, name: app}}}}"


def accepted(*entries: str, for_backtest: bool = False) -> Configuration:
    found = read_configuration(whole(*entries, top=PROMETHEUS), "r.yaml", for_backtest=for_backtest)
    assert [str(problem) for each in found.refused for problem in each.problems] == []
    return found


def test_a_predictive_entry_has_its_own_kind_and_settings() -> None:
    (found,) = accepted(entry("a", f"targets: [{TARGET}]", "outputs: [scale]", kind=LEAST)).recommendations
    assert found.policy.type == "predictive"
    assert found.subject == PredictiveSettings("sum(x)", 10.0, 120.0, max_replicas=50)


@pytest.mark.parametrize(
    ("lines", "kind", "problems"),
    [
        (
            (),
            "predictive: {model: linear}",
            [
                "r.yaml:6: `predictive.load` is missing: write load: sum(connections)",
                "r.yaml:6: `predictive.loadPerReplica` is missing: write loadPerReplica: 1000",
                "r.yaml:6: `predictive.horizon` is missing: write horizon: 120s",
            ],
        ),
        (
            ("maxStep: x",),
            "predictive: {load: x, horizon: x}",
            [
                "r.yaml:6: `predictive.loadPerReplica` is missing",
                "r.yaml:6: 'x' is not a duration: write numbers with units, such as 90s, 1h30m or 14d",
                "r.yaml:7: 'x' is not a number of replicas or a percentage: write 1 or more, or a percentage such as ",
            ],
        ),
        (
            (),
            "predictive: []",
            ["r.yaml:6: `predictive` is not a mapping: write a mapping with load, loadPerReplica, horizon, hpaSync"],
        ),
        (
            ("proportional: {linear: {nodesPerReplica: 1}}",),
            LEAST,
            ["r.yaml:5: proportional and predictive are both in one recommendation"],
        ),
        (
            (f"targets: [{TARGET}]",),
            EACH,
            ["r.yaml:7: targets and forEach cannot be combined: the series name the targets: remove targets, or fo"],
        ),
        (
            ("targets: []",),
            EACH,
            ["r.yaml:7: targets and forEach cannot be combined: the series name the targets: remove targets, or fo"],
        ),
        (("outputs: [scale]",), LEAST, ["r.yaml:5: the output scale has no targets: list them under targets"]),
        (
            (),
            f"predictive: {{{RUNNING}, override: {{replicas: 3, replicas: 4, until: 2027-01-15T08:00:00Z}}}}",
            ["r.yaml:6: "],
        ),
    ],
    ids=range(8),
)
def test_an_error_refuses_the_entry(lines: tuple[str, ...], kind: str, problems: list[str]) -> None:
    found = problems_of(whole(entry("a", *lines, kind=kind), top=PROMETHEUS))
    assert len(found) == len(problems)
    for problem, beginning in zip(found, problems, strict=True):
        assert problem.startswith(beginning)


def test_series_may_name_the_targets_of_scale_calls() -> None:
    (found,) = accepted(entry("a", "outputs: [scale]", kind=EACH)).recommendations
    assert found.policy.targets == ()


@pytest.mark.parametrize("outputs", ["[scale]", "[metric, scale]"])
def test_the_output_scale_needs_max_replicas(outputs: str) -> None:
    kind = "predictive: {load: x, loadPerReplica: 1, horizon: 1m}"
    lines = (f"targets: [{TARGET}]", f"outputs: {outputs}")
    (problem,) = problems_of(whole(entry("a", *lines, kind=kind), top=PROMETHEUS))
    assert problem.startswith("r.yaml:8: the output scale needs `maxReplicas`: nothing else limits the sizes")
    assert problem.endswith("recommend, doctor and backtest say which N the history of the load suggests")
    accepted(entry("a", *lines, kind=kind), for_backtest=True)
    accepted(entry("a", f"targets: [{TARGET}]", kind=kind))


def test_a_prediction_needs_prometheus() -> None:
    assert problems_of(whole(entry("a", kind=LEAST))) == [
        "r.yaml:4: a query needs Prometheus: write prometheus: {url: …} at the top of the file"
    ]


def test_a_backtest_needs_neither_prometheus_nor_all_required_keys() -> None:
    content = whole(entry("a", kind="predictive: {load: x}"), entry("b", kind="predictive: {model: linear}"))
    found = read_configuration(content, "r.yaml", for_backtest=True)
    assert [each.policy.name for each in found.recommendations] == ["a", "b"]


def test_a_backtest_refuses_wrong_values_like_everything_else() -> None:
    content = whole(entry("a", kind="predictive: {load: x, horizon: x}"))
    found = read_configuration(content, "r.yaml", for_backtest=True)
    assert [each.problems[0].line for each in found.refused] == [5]


def test_only_queries_with_one_value_are_sent_in_each_poll() -> None:
    kind = f"predictive: {{{RUNNING}, freezeUnless: up, connections: {{limit: 1, metric: pods}}}}"
    assert {each.text for each in queries_of(accepted(entry("a", kind=kind)))} == {"up"}
    assert queries_of(accepted(entry("a", kind=LEAST))) == frozenset()


def test_only_queries_that_a_size_follows_must_not_lack_series() -> None:
    frozen = entry("a", kind=f"predictive: {{{RUNNING}, freezeUnless: up}}")
    driven = entry("b", kind="proportional: {drivers: {query: {expr: sum(load), perReplica: 1}}}")
    assert {each.text for each in sizing_queries_of(accepted(frozen, driven))} == {"sum(load)"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("predictive: {model: linear}", False),
        ("predictive: {load: x}", True),
        ("predictive: {freezeUnless: x}", True),
        ("predictive: {connections: {limit: 1}}", False),
        ("predictive: {connections: {limit: 1, metric: x}}", True),
        ("proportional: {linear: {nodesPerReplica: 1}}", False),
        ("proportional: {drivers: {query: {expr: x, perReplica: 1}}}", True),
    ],
)
def test_prometheus_is_needed_only_for_queries(kind: str, *, expected: bool) -> None:
    (found,) = accepted(entry("a", kind=kind), for_backtest=True).recommendations
    assert needs_of_one(found).has_queries is expected


def test_a_prediction_reads_only_the_owners_of_its_targets_from_the_cluster() -> None:
    needs = needs_of(accepted(entry("a", f"targets: [{TARGET}]", kind=LEAST)))
    assert needs == ClusterNeeds(autoscaler_namespaces=frozenset({"kube-system"}))
    assert needs_of(accepted(entry("a", kind=EACH))).autoscaler_namespaces == set()
    assert needs_of(accepted(entry("a", "outputs: [scale]", kind=EACH))).autoscaler_namespaces == {""}
