"""cluster-proportional-autoscaler's ConfigMap, as lenient and as strict as Go's encoding/json makes it there."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.proportional.config_map_parsing import ParametersError, mode_entry, parse_parameters
from recommender.kinds.proportional.parameters import Interpolated, Ladder, Linear

if TYPE_CHECKING:
    from recommender.kinds.proportional.parameters import Mode

GOOD: Final = {
    "unknown keys are ignored": ("linear", '{"nodesPerReplica": 2, "x": {"y": [1e400]}}', Linear(nodes_per_replica=2)),
    "keys match in any case": ("linear", '{"NODESPERREPLICA": 2, "mIn": 3}', Linear(nodes_per_replica=2, min=3)),
    "a long s is an s": ("linear", '{"node\\u017fPerReplica": 2}', Linear(nodes_per_replica=2)),
    "the last duplicate wins": ("linear", '{"nodesPerReplica": 2, "NodesPerReplica": 3}', Linear(nodes_per_replica=3)),
    "null leaves the default": ("linear", '{"nodesPerReplica": 2, "min": null}', Linear(nodes_per_replica=2)),
    "null leaves the value before": (
        "linear",
        '{"nodesPerReplica": 2, "nodesPerReplica": null}',
        Linear(nodes_per_replica=2),
    ),
    "an exponent in a ratio": ("linear", '{"coresPerReplica": 1e2}', Linear(cores_per_replica=100)),
    "a ratio too small for a float is 0": (
        "linear",
        '{"coresPerReplica": 1e-400, "nodesPerReplica": 1}',
        Linear(nodes_per_replica=1),
    ),
    "minus zero": ("linear", '{"nodesPerReplica": 1, "max": -0}', Linear(nodes_per_replica=1)),
    "the largest int": ("linear", '{"nodesPerReplica":1,"max":9223372036854775807}', Linear(0, 1, 1, 2**63 - 1)),
    "white space": ("linear", ' \t\r\n{"nodesPerReplica"\n:1}\n', Linear(nodes_per_replica=1)),
    "a missing number is 0": ("ladder", '{"nodesToReplicas": [[3]]}', Ladder(nodes_to_replicas=((3, 0),))),
    "an empty rung is 0, 0": ("ladder", '{"nodesToReplicas": [[]]}', Ladder(nodes_to_replicas=((0, 0),))),
    "a third value is lost": ("ladder", '{"nodesToReplicas": [[1, 2, "x"]]}', Ladder(nodes_to_replicas=((1, 2),))),
    "a rung of null": ("ladder", '{"nodesToReplicas": [null, [1, null]]}', Ladder((), ((0, 0), (1, 0)))),
    "no rungs": ("ladder", "{}", Ladder()),
    "null is an empty ladder": ("ladder", "null", Ladder()),
    "rungs of null": ("ladder", '{"nodesToReplicas": [[1, 2]], "nodesToReplicas": null}', Ladder()),
    "a duplicate list is read over the former one": (
        "ladder",
        '{"nodesToReplicas": [[1, 2], [3, 4]], "NodesToReplicas": [[null, 7]]}',
        Ladder(nodes_to_replicas=((1, 7),)),
    ),
    "memory behind the end of a list comes back": (
        "ladder",
        '{"nodesToReplicas": [[1, 2], [3, 4]], "nodesToReplicas": [[5, 6]], "nodesToReplicas": [null, null]}',
        Ladder(nodes_to_replicas=((3, 4), (5, 6))),
    ),
    "an empty list frees its memory": (
        "ladder",
        '{"nodesToReplicas": [[1, 2]], "nodesToReplicas": [], "nodesToReplicas": [null]}',
        Ladder(nodes_to_replicas=((0, 0),)),
    ),
    "a mode that the peer does not have": (
        "interpolated",
        '{"coresToReplicas": [[8, 3], [2, 1]], "min": 0}',
        Interpolated(cores_to_replicas=((2, 1), (8, 3))),
    ),
}


@pytest.mark.parametrize(("mode", "text", "expected"), GOOD.values(), ids=GOOD)
def test_parameters_that_the_peer_accepts_are_accepted(mode: str, text: str, expected: Mode) -> None:
    assert parse_parameters(mode, text) == expected


BAD: Final = {
    "not JSON": ("linear", "", "linear: this is not JSON: Expecting value"),
    "a trailing comma": ("linear", '{"nodesPerReplica": 1,}', "linear: this is not JSON"),
    "two values": ("linear", '{"nodesPerReplica": 1} {}', "linear: this is not JSON: Extra data"),
    "NaN": ("linear", '{"nodesPerReplica": NaN}', "linear: this is not JSON: NaN is not a JSON number"),
    "a number that begins with 0": ("linear", '{"nodesPerReplica": 01}', "linear: this is not JSON"),
    "a control character": ("linear", '{"a\n": 1}', "linear: this is not JSON"),
    "deeply nested": ("linear", "[" * 200_000, "linear: "),
    "not an object": ("linear", "[]", "`linear` is a list: write an object"),
    "a text for a number": (
        "linear",
        '{"nodesPerReplica": "1"}',
        "`nodesPerReplica` is the string '1': write a number",
    ),
    "a boolean for a number": ("linear", '{"min": true}', "`min` is true: write a whole number"),
    "a number for a boolean": (
        "linear",
        '{"preventSinglePointFailure": 1}',
        "`preventSinglePointFailure` is 1: write true or false",
    ),
    "a fraction for a whole number": ("linear", '{"min": 1.0}', "`min` is 1.0: write a whole number"),
    "an exponent for a whole number": ("linear", '{"max": 1e2}', "`max` is 1e2: write a whole number"),
    "an int that is too large": ("linear", '{"max": 9223372036854775808}', "`max` is 9223372036854775808: write"),
    "an int of many digits": ("linear", '{"max": ' + "9" * 5000 + "}", "`max` is 9999"),
    "a ratio that is too large": ("linear", '{"nodesPerReplica": 1e400}', "`nodesPerReplica` is 1e400: write a number"),
    "a wrong type that a duplicate would replace": (
        "linear",
        '{"nodesPerReplica": "x", "nodesPerReplica": 1}',
        "`nodesPerReplica` is the string 'x': write a number",
    ),
    "min comes first": ("linear", '{"min": -1, "max": -2, "coresPerReplica": -1}', "linear: `min` is -1"),
    "then max": ("linear", '{"max": -2}', "linear: `max` is -2, less than `min`, which is 1"),
    "then both ratios": ("linear", '{"max": 2}', "linear: neither `coresPerReplica` nor `nodesPerReplica`"),
    "then a negative ratio": (
        "linear",
        '{"coresPerReplica": -1}',
        "linear: `coresPerReplica` is -1, which is negative",
    ),
    "null has no ratio": ("linear", "null", "linear: neither `coresPerReplica` nor `nodesPerReplica`"),
    "a rung that is a number": ("ladder", '{"nodesToReplicas": [1]}', "`nodesToReplicas` is 1: write [threshold"),
    "a fraction in a rung": ("ladder", '{"nodesToReplicas": [[1, 1.5]]}', "`nodesToReplicas` is 1.5: write a whole"),
    "rungs that are an object": ("ladder", '{"nodesToReplicas": {}}', "`nodesToReplicas` is an object: write a list"),
    "rungs that are false": ("ladder", '{"nodesToReplicas": false}', "`nodesToReplicas` is false: write a list"),
    "a negative rung": ("ladder", '{"coresToReplicas": [[-1, 1]]}', "ladder: the rung [-1, 1] of `coresToReplicas`"),
    "an unknown mode": ("Linear", "{}", "the mode 'Linear' is not known: did you mean 'linear'?"),
    "a strange mode": ("x", "{}", "the mode 'x' is not known: write one of linear, ladder, interpolated"),
}


@pytest.mark.parametrize(("mode", "text", "message"), BAD.values(), ids=BAD)
def test_parameters_that_the_peer_refuses_are_refused_with_a_reason(mode: str, text: str, message: str) -> None:
    with pytest.raises(ParametersError) as refused:
        parse_parameters(mode, text)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("data", "found"), [({}, "it is empty"), ({"linear": "{}", "ladder": "{}"}, "it has ladder, linear")]
)
def test_a_config_map_has_exactly_one_key(data: dict[str, str], found: str) -> None:
    with pytest.raises(ParametersError, match=found):
        mode_entry(data)


@given(text=st.text(max_size=30), mode=st.sampled_from(["linear", "ladder", "interpolated"]))
def test_any_text_is_either_accepted_or_refused(text: str, mode: str) -> None:
    for shape in ("{}", '{{"min":{}}}', '{{"nodesToReplicas":[[{}]]}}', '{{"nodesPerReplica":1,{}}}'):
        with contextlib.suppress(ParametersError):
            assert isinstance(parse_parameters(mode, shape.format(text)), Linear | Ladder | Interpolated)
