"""Choices of the expanders that the cases of Cluster Autoscaler do not cover."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.cluster_size.expanders.chain import EXPANDERS, choose, expander_problems, least_waste
from recommender.kinds.cluster_size.expanders.expander_context import Choice, ExpanderContext
from recommender.kinds.cluster_size.expanders.price import Offer, keep_cheapest, preferred_cores, price_score
from recommender.kinds.cluster_size.expanders.priorities import (
    PrioritiesError,
    compile_priorities,
    highest_priority,
    parse_priorities,
)
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.options import group, option, template

CONTEXT = ExpanderContext(node_count=3)


@pytest.mark.parametrize(
    ("chain", "problems"),
    [
        pytest.param(("priority", "least-waste", "random"), [], id="chain"),
        pytest.param((), ["no expander is given"], id="empty"),
        pytest.param(("leastwaste",), ["did you mean least-waste?"], id="unknown"),
        pytest.param(("price", "price"), ["the expander price is given twice"], id="twice"),
        pytest.param(("random", "price"), ["the expander price has no effect after random"], id="after-random"),
        pytest.param(("grpc",), ["grpc is not supported"], id="grpc"),
    ],
)
def test_invalid_chains_are_reported(chain: tuple[str, ...], problems: list[str]) -> None:
    found = expander_problems(chain)
    assert len(found) == len(problems)
    assert all(expected in whole for expected, whole in zip(problems, found, strict=True))


def test_the_chain_stops_at_the_expander_that_leaves_one_option() -> None:
    options = [option(group("a"), 2, 4), option(group("b"), 1, 4), option(group("c"), 1, 3)]
    choice = choose(options, ("most-pods", "least-nodes", "least-waste"), CONTEXT)
    assert choice.option is options[1]
    assert choice.reason == "most-pods: 4 pods, the most; least-nodes: 1 node, the fewest"


def test_the_only_option_is_chosen_without_expanders_and_no_option_is_no_choice() -> None:
    only = option(group("a"), 1, 1)
    assert choose((only,), ("least-waste",), CONTEXT) == Choice(only, "the only group that can hold pods")
    assert choose((), ("least-waste",), CONTEXT) == Choice(None, "there is no option")


@given(seed=st.integers(), names=st.lists(st.text("abc-", min_size=1), min_size=1, max_size=5, unique=True))
def test_a_random_choice_depends_only_on_seed_and_names(seed: int, names: list[str]) -> None:
    context = ExpanderContext(node_count=3, seed=seed)
    options = [option(group(name), 1, 1) for name in names]
    one = choose(options, ("random",), context)
    other = choose(options[::-1], ("random",), context)
    assert one.option is not None
    assert one.option is other.option


def test_different_seeds_can_choose_different_groups() -> None:
    options = [option(group(name), 1, 1) for name in "abcd"]
    choices = [choose(options, ("random",), ExpanderContext(3, seed)).option for seed in range(50)]
    assert {choice.group.name for choice in choices if choice is not None} == set("abcd")


@pytest.mark.parametrize(
    ("prices", "counts", "chosen"),
    [
        pytest.param((6.7, 1.0, None), (1, 1, 1), "b", id="cheaper"),
        pytest.param((2.0, 1.0, 3.0), (1, 3, 1), "a", id="by-all-of-its-nodes"),
        pytest.param((1.0, 1.0, 1.0), (1, 1, 1), "a", id="by-name"),
        pytest.param((None, None, None), (1, 1, 1), "a", id="without-prices"),
    ],
)
def test_the_cheaper_of_equal_options_is_chosen_and_then_the_first_by_name(
    prices: tuple[float | None, ...], counts: tuple[int, ...], chosen: str
) -> None:
    groups = [group(name, price=price) for name, price in zip("abc", prices, strict=True)]
    options = [option(its, count, 1) for its, count in zip(groups, counts, strict=True)]
    for seed in range(20):
        for order in (options, options[::-1]):
            found = choose(order, ("most-pods",), ExpanderContext(3, seed))
            assert found.option is not None
            assert found.option.group.name == chosen


@pytest.mark.parametrize("expander", EXPANDERS)
def test_every_expander_chooses_one_of_equal_options(expander: str) -> None:
    options = [option(group(name, price=1.0), 1, 1) for name in "ab"]
    choice = choose(options, (expander,), CONTEXT)
    assert choice.option in options


def test_a_template_without_memory_wastes_more_than_any_other() -> None:
    broken = option(group("broken", node_template=template("4", "0")), 1, 1)
    whole = option(group("whole"), 9, 1)
    assert least_waste([broken, whole], CONTEXT).options == (whole,)
    assert least_waste([broken], CONTEXT).reason.startswith("an unknown share of CPU and memory")


def test_price_compares_only_groups_with_a_price_and_reports_the_others() -> None:
    priced = option(group("priced", price=5.0), 3, 1)
    kept = keep_cheapest([option(group("unpriced"), 1, 1), priced], CONTEXT)
    assert kept.options == (priced,)
    assert "not compared, because they have no price: unpriced" in kept.reason


def test_price_keeps_all_groups_if_none_has_a_price() -> None:
    options = (option(group("a"), 1, 1), option(group("b"), 2, 1))
    assert keep_cheapest(options, CONTEXT).options == options


def test_price_prefers_the_cheaper_of_equal_groups() -> None:
    pods = [pod(f"p{number}", "1", "4Gi") for number in range(4)]
    dear, cheap = option(group("dear", price=0.4), 1, pods), option(group("cheap", price=0.3), 1, pods)
    assert keep_cheapest([dear, cheap], CONTEXT).options == (cheap,)


def test_price_counts_all_nodes_of_an_option() -> None:
    one, three = option(group("one", price=2.0), 1, 4), option(group("three", price=1.0), 3, 4)
    assert keep_cheapest([one, three], CONTEXT).options == (one,)


def test_the_value_of_pods_is_their_price_in_the_cheapest_group() -> None:
    two = [pod("p0", "1", "0"), pod("p1", "1", "0")]
    cheap, fuller = option(group("cheap", price=1.0), 1, two[:1]), option(group("fuller", price=1.75), 1, two)
    # With pods as dear as in this group, the fuller one would be the best.
    dear = option(group("dear", price=10.0), 1, two[:1])
    assert keep_cheapest([dear, fuller, cheap], CONTEXT).options == (cheap,)


@pytest.mark.parametrize(
    ("nodes", "cores"),
    [(0, 1), (2, 1), (3, 2), (6, 2), (7, 4), (20, 4), (21, 8), (60, 8), (61, 16), (200, 16), (201, 32)],
)
def test_larger_clusters_prefer_larger_nodes_at_the_sizes_of_the_peer(nodes: int, cores: int) -> None:
    assert preferred_cores(nodes) == cores


def test_7_5_gib_of_requested_memory_are_worth_a_core() -> None:
    memory = option(group("memory", price=0.4), 1, [pod("m", "1", "15Gi")])
    cpu = option(group("cpu", price=0.4), 1, [pod("c", "2900m", "0")])
    assert keep_cheapest([cpu, memory], CONTEXT).options == (memory,)
    more_cpu = option(group("cpu", price=0.4), 1, [pod("c", "3100m", "0")])
    assert keep_cheapest([more_cpu, memory], CONTEXT).options == (more_cpu,)


def test_the_size_of_a_node_matters_less_among_many() -> None:
    scores = [price_score(Offer(1.0, count, 1.0, unfitness=3.0), 1.0) for count in (1, 16, 500)]
    assert scores == [3.0, pytest.approx(1.0 + 2.0 * (1 - math.tanh(1.0))), pytest.approx(1.0)]


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "gpu.intel.com/xe", "habana.ai/gaudi"])
def test_price_chooses_nodes_with_gpus_only_if_no_others_hold_the_pods(resource: str) -> None:
    gpu = option(group("gpu", price=0.1, node_template=template(extended={resource: "1"})), 1, 4)
    plain = option(group("plain", price=1.0), 1, 4)
    assert keep_cheapest([gpu, plain], CONTEXT).options == (plain,)
    assert keep_cheapest([gpu], CONTEXT).options == (gpu,)
    none = option(group("none", price=0.1, node_template=template(extended={resource: "0"})), 1, 4)
    assert keep_cheapest([none, plain], CONTEXT).options == (none,)


@pytest.mark.parametrize("count", [1, 20, 500])
def test_price_never_prefers_a_node_of_unknown_size(count: int) -> None:
    unknown = option(group("unknown", price=0.1, node_template=template("0", "0")), count, 4)
    known = option(group("known", price=0.1), count, 4)
    assert keep_cheapest([unknown, known], CONTEXT).options == (known,)
    assert keep_cheapest([unknown], CONTEXT).options == (unknown,)


def test_a_price_of_zero_is_best() -> None:
    free, paid = option(group("free", price=0.0), 1, 4), option(group("paid", price=1.0), 1, 4)
    assert keep_cheapest([paid, free], CONTEXT).options == (free,)


def test_the_config_map_of_the_peer_is_read_unchanged() -> None:
    text = """
10:
  - .*t2\\.large.*
  - .*t3\\.large.*
50:
  - .*m4\\.4xlarge.*
"""
    assert parse_priorities(text, "cm") == {10: (r".*t2\.large.*", r".*t3\.large.*"), 50: (r".*m4\.4xlarge.*",)}
    assert parse_priorities("10:\n20: [a]\n", "cm") == {10: (), 20: ("a",)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "cm: it is empty", id="empty"),
        pytest.param("[a]", "expected a mapping", id="list"),
        pytest.param("high: [a]", "'high' is not a priority", id="no-number"),
        pytest.param("10: a", "expected a list", id="no-list"),
        pytest.param("10: ['(']", "a pattern of priority 10", id="pattern"),
        pytest.param("10: ['(?=a)']", "a pattern of priority 10", id="look-ahead"),
        pytest.param("10: [a\n", "cm:", id="yaml"),
        pytest.param("10: [a]\n10: [b]\n", "cm:2", id="twice"),
    ],
)
def test_broken_priorities_are_refused_with_the_location(text: str, expected: str) -> None:
    with pytest.raises(PrioritiesError) as caught:
        parse_priorities(text, "cm")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("priorities", "kept", "expected"),
    [
        pytest.param({10: ("^a",), 20: ("^b",)}, ["b1"], "priority 20, the highest", id="highest"),
        pytest.param({10: ("1$",)}, ["a1", "b1"], "left out, because they have no priority: c2", id="unmatched"),
        pytest.param({10: ("1$",), 20: ("b",)}, ["b1"], "priority 20", id="overlapping"),
        pytest.param({10: ("zzz",)}, ["a1", "b1", "c2"], "so all of them stay", id="none"),
        pytest.param({-1: ("a",)}, ["a1"], "priority -1, the highest", id="lowest that counts"),
        pytest.param({-1: ("a",), 0: ("b",)}, ["b1"], "priority 0, the highest", id="above the lowest"),
        pytest.param({-2: ("a",)}, ["a1", "b1", "c2"], "so all of them stay", id="below the lowest"),
        pytest.param({-9: ("a",)}, ["a1", "b1", "c2"], "so all of them stay", id="far below the lowest"),
    ],
)
def test_the_highest_priority_with_a_pattern_in_the_name_wins(
    priorities: dict[int, tuple[str, ...]], kept: list[str], expected: str
) -> None:
    context = ExpanderContext(node_count=3, priorities=compile_priorities(priorities, "cm"))
    found = highest_priority([option(group(name), 1) for name in ("a1", "b1", "c2")], context)
    assert [its.group.name for its in found.options] == kept
    assert expected in found.reason


def test_missing_priorities_keep_all_groups_with_a_reason() -> None:
    options = (option(group("a"), 1), option(group("b"), 1))
    found = highest_priority(options, ExpanderContext(node_count=3, priorities_problem="the ConfigMap is missing"))
    assert found.options == options
    assert found.reason == "all groups stay, because the ConfigMap is missing"
