"""The text of an answer: its statements, their order, and no line wider than a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.cluster_size.model.answer import (
    ClusterSizeAnswer,
    GroupSize,
    KeptNode,
    LowerBound,
    Removal,
    SizeStep,
    UnschedulablePods,
)
from recommender.kinds.cluster_size.model.pod_places import (
    NodeState,
    PlaceKind,
    PodMove,
    PodName,
    PodOrigin,
    PodPlace,
    UnavailableNode,
)
from recommender.kinds.cluster_size.shown.document import size_keys
from recommender.kinds.cluster_size.shown.explain_details import explained_lines
from recommender.kinds.cluster_size.shown.table import size_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


def text_of(answer: ClusterSizeAnswer, *, width: int | None = None) -> list[str]:
    return list(size_lines(answer, width, lambda text, _: text))


def group(name: str, now: int, then: int, after: int | None = None, reason: str = "why") -> GroupSize:
    return GroupSize(name, now, then, then if after is None else after, 0, 10, reason)


def pods(count: int, owner: str = "web", namespace: str = "shop") -> tuple[PodName, ...]:
    return tuple(PodName(namespace, f"{owner}-{number}", owner) for number in range(count))


def places(
    names: Sequence[PodName], kind: PlaceKind, node: str, origin: PodOrigin = PodOrigin.PENDING
) -> list[PodPlace]:
    return [PodPlace(name, kind, node, "a", origin, "gone" if origin is PodOrigin.MOVED else "") for name in names]


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        pytest.param(
            ClusterSizeAnswer(
                groups=(group("a", 3, 4), group("long", 0, 2), group("same", 5, 5)),
                places=(*places(pods(2), PlaceKind.NEW, ""), *places(pods(1, "api"), PlaceKind.NEW, "")),
                steps=(
                    SizeStep("round/1", "a", 4, "1 node for 3 pods; least-waste"),
                    SizeStep("limits.nodes", "a", 4, "1 of 2 nodes are allowed"),
                    SizeStep("minSize", "long", 2, "2 nodes, to reach the minimum of 2"),
                ),
            ),
            [
                "  CHANGES",
                "    a     3 to 4  for shop/web-0, shop/web-1, shop/api-0; limits.nodes: 1 of 2",
                "        nodes are allowed",
                "    long  0 to 2  minSize: 2 nodes, to reach the minimum of 2",
                "    unchanged: same 5",
            ],
            id="groups that change come first, with their pods",
        ),
        pytest.param(
            ClusterSizeAnswer(
                groups=(group("a", 3, 3),),
                unschedulable=(
                    UnschedulablePods(pods(12), {"a": "x"}, missing="needs disk=nvme; no group has it"),
                    UnschedulablePods(pods(1, "db"), {"a": "y"}, missing="needs disk=nvme; no group has it"),
                    UnschedulablePods(pods(1, "pg"), {}, 'persistentvolumeclaim "data" not found'),
                ),
            ),
            [
                "  CHANGES",
                "    no group changes: a 3",
                "  NO NODE FOR",
                "    12 pods of shop/web, shop/db-0: needs disk=nvme; no group has it",
                '    shop/pg-0: persistentvolumeclaim "data" not found',
            ],
            id="what is missing is stated once",
        ),
        pytest.param(
            ClusterSizeAnswer(
                groups=(group("a", 3, 3),),
                places=(
                    *places(pods(2), PlaceKind.EXISTING, "n3"),
                    *places(pods(1, "api"), PlaceKind.EXISTING, "n9"),
                    *places(pods(1, "vip"), PlaceKind.NOMINATED, "n3"),
                    *places(pods(1, "soon"), PlaceKind.UPCOMING, ""),
                ),
                unavailable=(
                    UnavailableNode("n9", "a", NodeState.NOT_READY),
                    UnavailableNode("n5", "a", NodeState.CORDONED),
                    UnavailableNode("n6", "", NodeState.CORDONED),
                    UnavailableNode("n7", "a", NodeState.STARTING, "it is not ready yet"),
                ),
            ),
            [
                "  CHANGES",
                "    no group changes: a 3",
                "  PENDING ALTHOUGH A NODE HAS ROOM",
                "    2 pods of shop/web: there is room on n3",
                "    shop/api-0: there is room on n9 (which is NotReady)",
                "  WAITING FOR EVICTIONS",
                "    shop/vip-0: the scheduler evicts other pods for this on n3",
                "  WAITING FOR A NODE ON ITS WAY",
                "    shop/soon-0: there will be room on a node of a that is on its way",
                "  NODES THAT TAKE NO PODS",
                "    NotReady: n9 (a)",
                "    cordoned: n5 (a), n6",
                "    starting: n7 (a): it is not ready yet",
            ],
            id="pods for which the cluster needs no new node",
        ),
        pytest.param(
            ClusterSizeAnswer(
                groups=(group("a", 3, 3, 1),),
                removals=(
                    Removal("n1", "a", 0.15, "unneeded", None, moves=tuple(PodMove(one, "n3") for one in pods(2))),
                    Removal("n2", "a", 0.0, "unneeded", None),
                    Removal("n4", "a", 0.1, "NotUnneededLongEnough: in 3 min", 5.0, is_due=False),
                    Removal("n6", "b", 0.2, "ScaleUpHeld: paused", 5.0, is_due=False),
                    Removal("n7", "a", 0.0, "ScaleUpHeld: paused", 5.0, is_due=False),
                ),
                kept=(KeptNode("n3", "a", "NotUnderutilized: 72%"), KeptNode("n5", "a", "NotReplicated: x")),
                saved_per_hour=0.4,
            ),
            [
                "  CHANGES",
                "    a  3 to 1  2 nodes can be removed",
                "    remove n1 (15% requested): 2 pods of shop/web to n3",
                "    remove n2 (0% requested): no pod moves",
                "    removals save 0.40 an hour",
                "  REMOVABLE LATER",
                "    n4 (a, 10% requested): NotUnneededLongEnough: in 3 min",
                "    n6 (b, 20% requested), n7 (a, 0% requested): ScaleUpHeld: paused",
                "  NOTES",
                "    2 nodes stay: 1 NotReplicated, 1 NotUnderutilized (--explain says more)",
            ],
            id="removals name the new place of each pod",
        ),
        pytest.param(
            ClusterSizeAnswer(
                groups=(group("a", 1, 2),),
                places=(
                    *places(pods(1), PlaceKind.EXISTING, "n3", PodOrigin.MOVED),
                    *places(pods(1, "api"), PlaceKind.NEW, "", PodOrigin.MOVED),
                    *places(pods(4, "load"), PlaceKind.EXISTING, "n3", PodOrigin.ASSUMED),
                    *places(pods(9, "x", "tidewatch-headroom"), PlaceKind.EXISTING, "n3", PodOrigin.EXPECTED),
                ),
                unschedulable=(UnschedulablePods((*pods(1, "db"), *pods(1, "pg")), {}, missing="needs disk=nvme"),),
                displaced={pods(1, "db")[0]: "gone"},
            ),
            [
                "  CHANGES",
                "    a  1 to 2  for shop/api-0",
                "  NO NODE FOR",
                "    shop/db-0, shop/pg-0: needs disk=nvme",
                "  NEW PLACES",
                "    shop/db-0: from gone to no node, as NO NODE FOR says",
                "    shop/web-0: from gone to n3",
                "    shop/api-0: from gone to a new node of a",
                "  ROOM FOR ASSUMED PODS",
                "    4 pods of shop/load: there is room on n3",
                "  NOTES",
                "    there is room already for 9 pods of the reserve, which do not exist yet",
            ],
            id="what-if questions",
        ),
        pytest.param(
            ClusterSizeAnswer(
                groups=(
                    group("a", 1, 1, reason="paused"),
                    GroupSize("b", 0, 0, 0, 0, 1, "no template", is_left_out=True),
                ),
                places=tuple(places(pods(1), PlaceKind.NEW, "")),
            ),
            [
                "  CHANGES",
                "    no group changes: a 1",
                "    left out: b: no template",
                "  NO NODE FOR",
                "    shop/web-0: a would grow: paused",
            ],
            id="a brake",
        ),
        pytest.param(
            ClusterSizeAnswer(groups=(group("a", 3, 2), group("longer", 0, 2), group("wide" * 9, 1, 2))),
            [
                "  CHANGES",
                "    a       3 to 2",
                "    longer  0 to 2",
                f"    {'wide' * 9}  1 to 2",
            ],
            id="a name that is too long to align does not move the others",
        ),
        pytest.param(ClusterSizeAnswer(), ["  CHANGES", "    no node group is known"], id="nothing"),
    ],
)
def test_an_answer_has_this_text(answer: ClusterSizeAnswer, lines: list[str]) -> None:
    assert text_of(answer) == lines


def test_many_nodes_are_grouped_by_reason() -> None:
    waiting = tuple(Removal(f"n{one}", "a", 0.1, "ScaleUpNeeded: pods wait", None, is_due=False) for one in range(60))
    kept = tuple(KeptNode(f"k{one}", "a", f"NotUnderutilized: {one}% of cpu") for one in range(5000))
    found = text_of(ClusterSizeAnswer(removals=waiting, kept=kept, notes=("one note", "another")))
    assert found == [
        "  CHANGES",
        "    no node group is known",
        "  REMOVABLE LATER",
        "    n0, n1, n2, n3, n4, n5, n6, n7 and 52 more: ScaleUpNeeded: pods wait",
        "  NOTES",
        "    5000 nodes stay: NotUnderutilized (--explain says more)",
        "    one note",
        "    another",
    ]


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=90)


@given(
    names=st.lists(NAMES, min_size=1, max_size=4, unique=True),
    kinds=st.lists(st.tuples(st.sampled_from(PlaceKind), st.sampled_from(PodOrigin)), min_size=1, max_size=5),
    width=st.sampled_from((None, 40, 80, 120)),
)
def test_no_line_exceeds_the_width_or_contains_control_characters(
    names: list[str], kinds: list[tuple[PlaceKind, PodOrigin]], width: int | None
) -> None:
    sized = tuple(group(name, 1, 3, 2, reason=name) for name in names)
    owned = tuple(PodName(name, name, name) for name in names)
    answer = ClusterSizeAnswer(
        groups=sized,
        removals=tuple(Removal(name, name, 0.1, name, None, moves=(PodMove(owned[0], name),)) for name in names),
        kept=tuple(KeptNode(name, name, name) for name in names),
        unschedulable=(UnschedulablePods(owned, dict.fromkeys(names, names[0]), missing=names[0]),),
        places=tuple(PodPlace(owned[0], kind, names[0], names[0], origin, names[0]) for kind, origin in kinds),
        unavailable=tuple(UnavailableNode(name, name, NodeState.CORDONED) for name in names),
        steps=tuple(SizeStep(f"round/{number}", name, 3, name) for number, name in enumerate(names)),
        waiting=owned,
        notes=tuple(names),
    )
    lines = [*text_of(answer, width=width), *explained_lines(answer, {"nodes": 3}, width, lambda text, _: text)]
    assert max(map(len, lines)) <= (width or 80) + (0 if (width or 80) >= 80 else 20)
    assert all(line.isprintable() for line in lines)


def test_the_reason_for_leaving_a_group_out_is_stated_once() -> None:
    left_out = replace(group("b", 2, 2, reason="node n1 already belongs to a"), is_left_out=True)
    notes = ("node group b: node n1 already belongs to a", "node group c: its selector matches no node")
    lines = text_of(ClusterSizeAnswer(groups=(group("a", 1, 1), left_out), notes=notes))
    assert [line.strip() for line in lines if "already belongs" in line] == [
        "left out: b: node n1 already belongs to a"
    ]
    assert lines[-1] == "    node group c: its selector matches no node"


def test_the_explanation_lists_steps_refusals_and_nodes_and_states_equal_reasons_once() -> None:
    refused = {"a": "Insufficient cpu", "b": "taint", "c": "taint"}
    answer = ClusterSizeAnswer(
        groups=(group("a", 1, 2), group("b", 1, 1, reason="none fits"), group("c", 1, 1, reason="none fits")),
        unschedulable=(
            UnschedulablePods(pods(2), refused, missing="m"),
            # The label with its number makes each pod of a StatefulSet different from the others.
            UnschedulablePods(pods(1, "db"), dict(refused), missing="m"),
        ),
        steps=(SizeStep("round/1", "a", 2, "1 node for 1 pod"),),
        kept=(KeptNode("n1", "a", "NotReplicated: shop/x is alone", PodName("shop", "x")),),
    )
    assert list(explained_lines(answer, {"nodes": 3.0, "pods": 5.0}, None, lambda text, _: text)) == [
        "  INPUTS",
        "    nodes 3, pods 5",
        "  STEPS",
        "    round/1  a to 2: 1 node for 1 pod",
        "  GROUPS WITHOUT A STEP",
        "    b, c: none fits",
        "  REFUSALS",
        "    shop/web-0, shop/web-1, shop/db-0",
        "      a: Insufficient cpu",
        "      b, c: taint",
        "  NODES THAT STAY",
        "    n1 (a): NotReplicated: shop/x is alone",
    ]


def test_the_document_lists_pods_that_fit_and_destinations_of_moved_pods() -> None:
    answer = ClusterSizeAnswer(
        removals=(Removal("n1", "a", 0.1, "unneeded", None, moves=(PodMove(PodName("shop", "w"), "n2"),)),),
        places=(
            *places(pods(1), PlaceKind.EXISTING, "n3"),
            *places(pods(1, "moved"), PlaceKind.EXISTING, "n4", PodOrigin.MOVED),
            *places(pods(1, "soon"), PlaceKind.UPCOMING, "n5"),
            *places(pods(1, "reserve"), PlaceKind.EXISTING, "n6", PodOrigin.EXPECTED),
        ),
        unavailable=(UnavailableNode("n9", "", NodeState.NOT_READY),),
    )
    found = size_keys(answer)
    assert found["fits_existing"] == [{"pod": "shop/web-0", "node": "n3"}, {"pod": "shop/moved-0", "node": "n4"}]
    assert '"moves": [{"pod": "shop/w", "node": "n2"}]' in json.dumps(found["removals"])
    assert json.dumps(found["places"]).count('"kind": "existing"') == 2
    assert found["unavailable_nodes"] == [{"node": "n9", "group": None, "state": "NotReady", "detail": None}]


@pytest.mark.parametrize(
    ("cost", "cost_bound", "rest"),
    [
        (None, None, ""),
        (6.0, None, "; together they cost 6 an hour"),
        (6.0, 4.5, "; together they cost 6 an hour, and no mix costs less than 4.50"),
    ],
)
def test_the_cost_of_new_nodes_is_shown_even_without_its_lower_bound(
    cost: float | None, cost_bound: float | None, rest: str
) -> None:
    answer = ClusterSizeAnswer(bound=LowerBound(3, 2, cost, cost_bound))
    text = " ".join(" ".join(explained_lines(answer, {}, None, lambda text, _: text)).split())
    assert text == f"STEPS 3 new nodes; no mix of groups needs fewer than 2{rest}"
