"""Expanders choose as in Cluster Autoscaler's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recommender.kinds.cluster_size.expanders.chain import choose, least_nodes, least_waste, most_pods, run_chain, waste
from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext, Kept
from recommender.kinds.cluster_size.expanders.price import Offer, preferred_cores, price_score, unfitness
from recommender.kinds.cluster_size.expanders.priorities import compile_priorities
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.cases import Case, cases
from tests.recommender.kinds.cluster_size.options import group, option, template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
    from recommender.kinds.cluster_size.expanders.expander_context import Expander

CONTEXT = ExpanderContext(node_count=3)


def _names(options: Sequence[ExpansionOption]) -> list[str]:
    return [its.group.name for its in options]


def _wasteful(row: dict[str, Any]) -> ExpansionOption:
    node = template(f"{row['node_cpu_milli']}m", str(row["node_mem_bytes"]))
    pods = [pod(f"p{n}", f"{its['cpu_milli']}m", str(its["mem_bytes"])) for n, its in enumerate(row["pods"])]
    return option(group(row["group"], node_template=node), row["node_count"], pods)


@pytest.mark.parametrize("case", cases("expander_least_waste"))
def test_least_waste(case: Case) -> None:
    options = [_wasteful(row) for row in case.input["options"]]
    assert _names(least_waste(options, CONTEXT).options) == case.expected["best"]
    wasted = {its.group.name: pytest.approx(waste(its)) for its in options}
    assert case.expected.get("waste", wasted) == wasted


@pytest.mark.parametrize("case", cases("expander_most_pods"))
def test_most_pods(case: Case) -> None:
    options = [option(group(name), 1, count) for name, count in case.input["pods"].items()]
    assert _names(most_pods(options, CONTEXT).options) == case.expected["best"]


@pytest.mark.parametrize("case", cases("expander_least_nodes"))
def test_least_nodes(case: Case) -> None:
    options = [option(group(name), count) for name, count in case.input["node_count"].items()]
    assert _names(least_nodes(options, CONTEXT).options) == case.expected["best"]


@pytest.mark.parametrize("case", cases("expander_priority"))
def test_priority(case: Case) -> None:
    priorities = {int(number): patterns for number, patterns in case.input["priorities"].items()}
    context = ExpanderContext(node_count=3, priorities=compile_priorities(priorities, "case"))
    options = [option(group(name), 1) for name in case.input["options"]]
    choice = choose(options, ("priority",), context)
    assert choice.option is not None
    assert choice.option.group.name in case.expected["best"]


@pytest.mark.parametrize("case", cases("expander_price"))
def test_price(case: Case) -> None:
    prices, worth = case.input["node_price"], case.input["pod_price"]
    scores = {
        row["group"]: price_score(
            Offer(
                nodes_price=prices[row["node"]] * row["node_count"],
                node_count=row["node_count"],
                pods_price=sum(worth[name] for name in row["pods"]),
                unfitness=unfitness(case.input["preferred_cpu_milli"], row["node_cpu_milli"]),
                exists=row["exists"],
            ),
            worth["stabilize"],
        )
        for row in case.input["options"]
    }
    assert [min(scores, key=scores.__getitem__)] == case.expected["best"]


@pytest.mark.parametrize("case", cases("preferred_node"))
def test_preferred_node(case: Case) -> None:
    assert preferred_cores(case.input["cluster_nodes"]) == case.expected["cpu"]


@pytest.mark.parametrize("case", cases("node_unfitness"))
def test_node_unfitness(case: Case) -> None:
    assert unfitness(case.input["preferred_cpu_milli"], case.input["node_cpu_milli"]) == case.expected["unfitness"]


@pytest.mark.parametrize("case", cases("expander_chain"))
def test_chain(case: Case) -> None:
    def containing(text: str) -> tuple[str, Expander]:
        def kept(options: Sequence[ExpansionOption], _context: ExpanderContext) -> Kept:
            return Kept(tuple(its for its in options if text in its.group.name), text)

        return text, kept

    filters = [containing(text) for text in case.input["filters_substring"]]
    options = [option(group(name), 1) for name in case.input["options"]]
    choice = run_chain(options, filters, containing(case.input["fallback_substring"]), CONTEXT)
    assert choice.option is not None
    assert choice.option.group.name == case.expected["best"]
