"""Values of cluster-proportional-autoscaler's command line."""

from __future__ import annotations

from typing import Final

import pytest

from recommender.decisions.record import TargetReference
from recommender.kinds.proportional.cpa_flags import (
    FlagError,
    check_target_flag,
    lower_case,
    parse_targets,
    read_default_params,
    read_node_labels,
    read_targets,
)


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("deployment/a", True),
        ("Deployment/A , ReplicaSet/b,\treplicationcontroller/c\u00a0", True),
        ("deployment/", True),
        ("deployment/a/b", True),
        ("", False),
        (" ", False),
        ("deployment", False),
        ("deployments/a", False),
        ("statefulset/a", False),
        ("deployment/a,", False),
        ("deployment /a", False),
        ("\x1cdeployment/a", False),
    ],
)
def test_the_target_flag_accepts_what_the_peer_accepts(text: str, is_valid: bool) -> None:  # noqa: FBT001 - from the table
    if is_valid:
        check_target_flag(text)
    else:
        with pytest.raises(FlagError, match="--target"):
            check_target_flag(text)


@pytest.mark.parametrize("text", ["deployment", "a/b/c", "deployment/a,", ""])
def test_a_target_is_one_kind_and_one_name(text: str) -> None:
    with pytest.raises(FlagError, match="not one kind and one name"):
        parse_targets(text)


def test_targets_become_references_in_the_namespace() -> None:
    assert read_targets("Deployment/CoreDNS, replicaset/b,replicationcontroller/c", "kube-system") == (
        TargetReference("apps/v1", "Deployment", "kube-system", "coredns"),
        TargetReference("apps/v1", "ReplicaSet", "kube-system", "b"),
        TargetReference("v1", "ReplicationController", "kube-system", "c"),
    )


def test_lower_case_matches_go() -> None:
    assert lower_case("A\u0130\u03a3") == "ai\u03c3"


@pytest.mark.parametrize("text", ["deployment/", "deployment/a/b", "daemonset/a", ""])
def test_a_target_that_can_never_be_scaled_is_refused(text: str) -> None:
    with pytest.raises(FlagError, match=r"--target .*write deployment/NAME"):
        read_targets(text, "kube-system")


DEFAULT_PARAMS: Final = {
    "one mode": (
        '{"linear": {"nodesPerReplica": 16, "coresPerReplica": 2.5, "preventSinglePointFailure": true}}',
        {"linear": '{"coresPerReplica":2.5,"nodesPerReplica":16,"preventSinglePointFailure":true}'},
    ),
    "rungs": ('{"ladder":{"nodesToReplicas":[[1, 1],[2, null]]}}', {"ladder": '{"nodesToReplicas":[[1,1],[2,null]]}'}),
    "values of any kind": (
        '{"a": null, "b": "<x>&\\u0007", "c": []}',
        {"a": "null", "b": r'"\u003cx\u003e\u0026\u0007"', "c": "[]"},
    ),
    "the last duplicate": ('{"a": 1, "a": 2}', {"a": "2"}),
    "numbers as Go prints them": (
        '{"a": [1e2, 1E20, 1e21, 123456789012345678901, 0.00001, 1e-7, 1.50, -0, 5e-324]}',
        {"a": "[100,100000000000000000000,1e+21,123456789012345680000,0.00001,1e-7,1.5,-0,5e-324]"},
    ),
    "half of a pair": ('{"a\\ud800": "\\udc00"}', {"a\ufffd": '"\ufffd"'}),
    "null": ("null", {}),
    "nothing": ("{}", {}),
}


@pytest.mark.parametrize(("text", "expected"), DEFAULT_PARAMS.values(), ids=DEFAULT_PARAMS)
def test_default_params_are_the_data_that_the_peer_writes(text: str, expected: dict[str, str]) -> None:
    assert read_default_params(text) == expected


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"x"', '{"a": 1e400}', '{"a": NaN}', '{"a": 1,}', "[" * 200_000])
def test_default_params_that_the_peer_refuses_are_refused(text: str) -> None:
    with pytest.raises(FlagError, match="--default-params is not"):
        read_default_params(text)


def test_node_labels_accept_any_selector() -> None:
    assert read_node_labels("a=b,c in (d,e),!f").matches({"a": "b", "c": "e"})
    with pytest.raises(FlagError, match="--nodelabels 'a in' is not a label selector"):
        read_node_labels("a in")
