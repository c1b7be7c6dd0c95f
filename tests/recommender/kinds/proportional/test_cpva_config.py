"""The configuration of cluster-proportional-vertical-autoscaler, and the sizes that follow from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import parse_quantity
from recommender.kinds.proportional.cpva_config import (
    ScaleConfigError,
    container_sizes,
    override_defaults,
    parse_scale_config,
)

README = {
    "requests": {
        "cpu": {"base": "10m", "step": "1m", "coresPerStep": 1},
        "memory": {"base": "8Mi", "step": "1Mi", "coresPerStep": 1},
    }
}
BOTH = {
    "requests": {
        "cpu": {"base": "10m", "step": "2m", "coresPerStep": 4, "nodesPerStep": 2, "max": "40m"},
        "memory": {"base": "64Mi", "step": "2Mi", "nodesPerStep": 3},
    },
    "limits": {
        "cpu": {"base": "1", "step": "250m", "nodesPerStep": 2},
        "memory": {"base": "100Mi", "step": "10Mi", "nodesPerStep": 1, "max": "1Gi"},
    },
}
LAX = {
    "Requests": {
        "cpu": {"BASE": 0.5, "Step": "0.5m", "nodesperstep": 1, "unknown": 1},
        "memory": {"base": "10000001", "step": "1500k", "coresPerStep": -2, "nodesPerStep": 3},
    }
}


@pytest.mark.parametrize(
    ("config", "nodes", "cores", "sizes"),
    [
        (README, 2, 1004, {"requests": {"cpu": "1014m", "memory": "1061158912"}}),
        (README, 34, 1132, {"requests": {"cpu": "1142m", "memory": "1195376640"}}),
        (
            BOTH,
            3,
            1008,
            {
                "requests": {"cpu": "40m", "memory": "69206016"},
                "limits": {"cpu": "1500m", "memory": "136314880"},
            },
        ),
        (
            BOTH,
            34,
            1132,
            {
                "requests": {"cpu": "40m", "memory": "92274688"},
                "limits": {"cpu": "5250m", "memory": "461373440"},
            },
        ),
        (LAX, 2, 1004, {"requests": {"cpu": "502m", "memory": "11500001"}}),
        (LAX, 34, 1132, {"requests": {"cpu": "534m", "memory": "28000001"}}),
        (
            {"requests": {"ephemeral-storage": {"base": "1Gi", "step": "1Gi", "nodesPerStep": 1}}},
            10,
            0,
            {"requests": {"ephemeral-storage": "11Gi"}},
        ),
        ({"requests": {"cpu": {"base": "2048"}}}, 1, 4, {"requests": {"cpu": "2Ki"}}),
        ({"requests": None, "limits": {"cpu": {"base": None, "max": None}}}, 1, 4, {"limits": {"cpu": "0"}}),
    ],
)
def test_sizes_equal_those_that_the_peer_wrote(
    config: dict[str, object], nodes: int, cores: int, sizes: dict[str, object]
) -> None:
    """cluster-proportional-vertical-autoscaler at 3b97ec8 wrote them, spelt so, on a Kubernetes 1.36.3 API server."""
    assert container_sizes(nodes, cores, parse_scale_config(json.dumps({"main": config}))) == {"main": sizes}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": ', "this is not JSON"),
        ("[]", "it is a list, and not an object"),
        ('{"a": 1}', "`a` is 1: write an object"),
        ('{"a": {"requests": {"cpu": {"base": "1x"}}}}', "`a.requests.cpu.base`: '1x' is not a quantity"),
        ('{"a": {"requests": {"cpu": {"base": true}}}}', "`a.requests.cpu.base` is true: write a quantity"),
        ('{"a": {"requests": {"cpu": {"step": "-1"}}}}', "write a quantity from 0"),
        ('{"a": {"limits": {"memory": {"max": "10E"}}}}', "write a quantity from 0 to 9223372036854775"),
        (
            '{"a": {"limits": {"memory": {"nodesPerStep": 1.5}}}}',
            "`a.limits.memory.nodesPerStep` is 1.5: write a whole",
        ),
    ],
)
def test_an_invalid_configuration_is_refused_with_its_location(text: str, reason: str) -> None:
    with pytest.raises(ScaleConfigError) as refused:
        parse_scale_config(text)
    assert reason in str(refused.value)


def test_a_container_in_the_file_replaces_its_defaults_completely() -> None:
    defaults = parse_scale_config(json.dumps({"a": README, "b": README}))
    config = parse_scale_config('{"a": {"limits": {"cpu": {"base": "1"}}}}')
    sizes = container_sizes(1, 1, override_defaults(defaults, config))
    assert sizes == {"a": {"limits": {"cpu": "1"}}, "b": {"requests": {"cpu": "11m", "memory": "9437184"}}}


def test_a_name_with_half_of_a_surrogate_pair_is_read_as_go_reads_it() -> None:
    [name, pair] = parse_scale_config(r'{"\ud800a": {"requests": {"cpu": {"base": "1"}}}, "\ud83d\ude00": null}')
    assert (name, pair) == ("\ufffda", "\U0001f600")


def test_a_configuration_without_a_size_is_refused() -> None:
    with pytest.raises(ScaleConfigError, match="it names no size of any container"):
        override_defaults({}, parse_scale_config('{"a": {"requests": {}}}'))


counts = st.integers(0, 10_000)
amounts = st.integers(0, 10**7).map(lambda milli: f"{milli}m")


@given(
    nodes=st.tuples(counts, counts),
    cores=st.tuples(counts, counts),
    base=amounts,
    step=amounts,
    most=amounts,
    per_step=st.tuples(st.integers(-3, 40), st.integers(-3, 40)),
)
def test_sizes_stay_in_their_bounds_and_never_fall_as_the_cluster_grows(
    nodes: tuple[int, int],
    cores: tuple[int, int],
    base: str,
    step: str,
    most: str,
    per_step: tuple[int, int],
) -> None:
    keys = {"base": base, "step": step, "max": most, "nodesPerStep": per_step[0], "coresPerStep": per_step[1]}
    config = parse_scale_config(json.dumps({"a": {"requests": {"cpu": keys}}}))
    small, large = (
        parse_quantity(container_sizes(choose(nodes), choose(cores), config)["a"]["requests"]["cpu"])
        for choose in (min, max)
    )
    highest = parse_quantity(most)
    assert small <= large
    assert small >= min(parse_quantity(base), highest) or not highest.nanos
    assert large <= highest or not highest.nanos
