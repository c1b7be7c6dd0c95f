"""Records as JSON, as a table, as a log line and as an event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.decisions.texts.record_texts import event_text, log_fields, money_text
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, KeptNode
from recommender.kinds.proportional.sizes import ContainerSizes
from recommender.printed.document import recommendation_list
from recommender.printed.table import as_text
from tests.recommender.decisions.harness import DNS, NOW

RECORD = Record(
    "coredns",
    "proportional",
    NOW,
    Status.OK,
    "linear/nodes: ceil(176 / 16)",
    replicas=11,
    inputs={"nodes": 176.0, "load": 0.25},
    steps=(Step("linear/nodes", 11.0, "ceil(176 / 16)"), Step("largest", 11.5, "nodes 11, cores 11")),
    binding="linear/nodes",
    targets=(TargetOutcome(DNS, 3, TargetAction.SCALE, recommended_replicas=11),),
)
REFUSED = TargetOutcome(DNS, None, TargetAction.REFUSED, "field manager argocd", "argocd keeps writing it", 11)


def test_the_document_has_every_key() -> None:
    assert recommendation_list([RECORD], NOW) == {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "RecommendationList",
        "time": "2027-01-15T08:00:00Z",
        "items": [
            {
                "name": "coredns",
                "type": "proportional",
                "status": "ok",
                "message": "linear/nodes: ceil(176 / 16)",
                "time": "2027-01-15T08:00:00Z",
                "replicas": 11,
                "resources": None,
                "inputs": {"nodes": 176, "load": 0.25},
                "steps": [
                    {"step": "linear/nodes", "value": 11, "detail": "ceil(176 / 16)"},
                    {"step": "largest", "value": 11.5, "detail": "nodes 11, cores 11"},
                ],
                "binding": "linear/nodes",
                "targets": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "namespace": "kube-system",
                        "name": "coredns",
                        "current_replicas": 3,
                        "recommended_replicas": 11,
                        "action": "scale",
                        "owner": None,
                        "message": None,
                    }
                ],
            }
        ],
    }


def test_no_step_is_shown_as_the_one_that_decided_without_a_value() -> None:
    held = replace(RECORD, status=Status.HELD, message="paused: no size is known", replicas=None, binding=None)
    _heading, row, *_ = as_text([held]).splitlines()
    assert row.split() == ["coredns", "held", "no", "value", "-"]


def test_a_target_without_a_value_shows_why_instead_of_a_step() -> None:
    message = "paused: no size is known"
    targets = [TargetReference("apps/v1", "Deployment", "shop", name) for name in "ab"]
    held = [
        replace(RECORD, each=target, status=Status.HELD, message=message, replicas=None, binding=None)
        for target in targets
    ]
    rows = [line for line in as_text(held).splitlines() if "shop/" in line]
    assert [row.endswith(f"  {message}") for row in rows] == [True, True]


def test_keys_without_a_value_are_null() -> None:
    items = recommendation_list([Record("", "", NOW, Status.ERROR, "wrong")], NOW)["items"]
    assert items == [
        {
            "name": "",
            "type": None,
            "status": "error",
            "message": "wrong",
            "time": "2027-01-15T08:00:00Z",
            "replicas": None,
            "resources": None,
            "inputs": {},
            "steps": [],
            "binding": None,
            "targets": [],
        }
    ]


def test_the_table_aligns_its_columns() -> None:
    assert as_text([RECORD]).splitlines() == [
        "RECOMMENDATION  STATUS  VALUE        DECIDED BY",
        "coredns         ok      11 replicas  linear/nodes",
        "",
        "coredns",
        "  linear/nodes: ceil(176 / 16)",
        "  inputs: nodes 176, load 0.25",
        "  STEP          VALUE  DETAIL",
        "  linear/nodes  11     ceil(176 / 16)",
        "  largest       11.5   nodes 11, cores 11",
        "  TARGET                          NOW  VALUE  ACTION  NOTE",
        "  Deployment kube-system/coredns  3    11     scale",
    ]


def test_messages_shown_beside_a_target_are_not_repeated_and_nothing_else_is_cut() -> None:
    paused = "paused by the annotation tidewatch.io/paused"
    record = replace(
        RECORD,
        message=f"ceil(176 / 16); {paused}; {paused} until 2027-02-01T00:00:00Z",
        targets=(replace(RECORD.targets[0], message=paused),),
    )
    lines = [line.strip() for line in as_text([record]).splitlines()]
    assert f"ceil(176 / 16); {paused} until 2027-02-01T00:00:00Z" in lines


def test_the_table_fits_the_terminal() -> None:
    record = Record("a", "proportional", NOW, Status.ERROR, "word " * 60, targets=(REFUSED,))
    lines = as_text([record], width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()).count("word") == 60


def test_colour_changes_nothing_else() -> None:
    painted = as_text([RECORD], colour=True)
    assert "\x1b[32mok" in painted
    assert "\x1b[1mlinear/nodes" in painted
    for code in ("\x1b[32m", "\x1b[1m", "\x1b[0m"):
        painted = painted.replace(code, "")
    assert [line.split() for line in painted.splitlines()] == [line.split() for line in as_text([RECORD]).splitlines()]


def test_foreign_text_cannot_control_the_terminal() -> None:
    hostile = Record("a", "proportional", NOW, Status.ERROR, "\x1b[2J\nnew line", steps=(Step("x", 1, "\x1b]0;t\x07"),))
    text = as_text([hostile])
    assert "\x1b" not in text
    assert "\\n" in text


@pytest.mark.parametrize(
    ("amount", "exact", "at_least"),
    [
        (0.0, "0", "0"),
        (12.0, "12", "12"),
        (0.19 * 3, "0.57", "0.57"),
        (1.2, "1.20", "1.20"),
        (0.879999, "0.88", "0.88"),
        (0.8765, "0.8765", "0.8765"),
        (0.87659, "0.8766", "0.8765"),
        (1234.567, "1234.57", "1234.56"),
        (0.0123456, "0.01235", "0.01234"),
    ],
)
def test_money_has_cents_or_four_digits_and_a_lower_bound_is_not_rounded_up(
    amount: float, exact: str, at_least: str
) -> None:
    assert (money_text(amount), money_text(amount, is_lower_bound=True)) == (exact, at_least)


def test_the_sections_of_cluster_sizes_replace_their_summary_and_notes() -> None:
    kept = (KeptNode("n1", "a", "NotUnderutilized: 72% of cpu"),)
    answer = ClusterSizeAnswer(kept=kept, notes=("one note", "another"))
    record = Record(
        "a", "clusterSize", NOW, Status.OK, "what if: x; no node group changes; one note; another", details=answer
    )
    assert as_text([record]).splitlines()[3:] == [
        "a",
        "  what if: x",
        "  CHANGES",
        "    no node group is known",
        "  NOTES",
        "    1 node stays: NotUnderutilized (--explain says more)",
        "    one note",
        "    another",
    ]
    assert "NODES THAT STAY" in as_text([record], explain=True)


def test_sizes_of_containers_are_listed() -> None:
    sizes = {"coredns": {"requests": {"cpu": "100m", "memory": "70Mi"}}}
    text = as_text([Record("a", "proportional", NOW, Status.OK, "", details=ContainerSizes(sizes))])
    assert "sizes of 1 container" in text
    assert "  coredns requests: cpu 100m, memory 70Mi" in text


def test_an_empty_list_is_printed_as_a_sentence() -> None:
    assert as_text([]) == "There are no recommendations."


def test_the_log_line_contains_only_known_fields() -> None:
    assert log_fields(RECORD) == {
        "recommendation": "coredns",
        "status": "ok",
        "replicas": 11,
        "binding": "linear/nodes",
        "reason": "linear/nodes: ceil(176 / 16)",
    }
    stale = Record("a", "proportional", NOW, Status.STALE, "nodes are gone", targets=(REFUSED,))
    assert log_fields(stale) == {
        "recommendation": "a",
        "status": "stale",
        "reason": "nodes are gone",
        "refused": "argocd keeps writing it",
    }


def test_an_event_states_the_change_and_the_reason() -> None:
    assert event_text(RECORD, RECORD.targets[0]) == (
        "recommendation coredns: from 3 to 11 replicas: linear/nodes: ceil(176 / 16)"
    )
    assert event_text(RECORD, REFUSED) == ("recommendation coredns: not scaled to 11 replicas: argocd keeps writing it")
