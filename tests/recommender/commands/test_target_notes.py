"""Notes about targets are logged, each only while it is new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterState, Unknown
from recommender.commands.proportional.assembly import TargetNotes
from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from tests.recommender.decisions.harness import NOW, asks_for, autoscaler, inputs, policy

if TYPE_CHECKING:
    import pytest

    from recommender.decisions.inputs import Inputs


def logged(caplog: pytest.LogCaptureFixture, *polls: Inputs) -> list[str]:
    notes = TargetNotes()
    for given in polls:
        notes.log_notes([decide(policy(), asks_for(5), given, Memory(), NOW).record])
    return [record.message for record in caplog.records]


def test_a_note_is_logged_once_and_again_after_it_changed(caplog: pytest.LogCaptureFixture) -> None:
    helm, plain = inputs(replicas_managers=("helm",)), inputs()
    found = logged(caplog, helm, helm, plain, helm)
    assert len(found) == 2
    assert found[0].startswith("Deployment kube-system/coredns: helm wrote spec.replicas")


def test_hpas_whose_first_list_is_under_way_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    unknown = {"kube-system": Unknown("the first list has not arrived yet", is_awaited=True)}
    awaited = replace(inputs(), cluster=ClusterState(autoscalers=unknown))
    assert logged(caplog, awaited, inputs()) == []


def test_a_refusal_is_not_logged_a_second_time(caplog: pytest.LogCaptureFixture) -> None:
    assert logged(caplog, inputs(autoscalers=(autoscaler(),))) == []
