"""Events, conditions of objects, the page and `kubectl tidewatch why` say the same about the same decision."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape
from typing import Any, Final

import pytest

from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, TargetAction
from recommender.decisions.texts.record_texts import ACTION_TEXTS
from recommender.kubectl.why.workload import recommendation_section
from recommender.outputs.event_rules import events_of_record
from recommender.page.rendering import PageRenderer
from recommender.printed.document import recommendation_list
from recommender.running.objects.object_status import decided_status
from tests.recommender.configuration.objects.objects import made
from tests.recommender.running.objects.test_object_status import NOW, OUTCOME, POLICY, RECORD

OWNED: Final = "HorizontalPodAutoscaler web sets its size: remove it, or set the output metric"
REFUSED: Final = replace(
    RECORD, targets=(replace(OUTCOME, action=TargetAction.REFUSED, owner="HorizontalPodAutoscaler web", message=OWNED),)
)
PUBLISHED: Final = replace(RECORD, targets=(replace(OUTCOME, action=TargetAction.METRIC),))


def why(record: Record) -> str:
    item = json.loads(json.dumps(recommendation_list([record], NOW)))["items"][0]
    return "\n".join(recommendation_section(item, item["targets"][0]).sentences)


def page(record: Record) -> str:
    publication = Publication(leads=True, time=NOW, valid_until=NOW + 60, records=(record,))
    return unescape(PageRenderer("1").page(publication, lambda _: ()))


def condition(record: Record, name: str) -> dict[str, Any]:
    policy = POLICY if record is not PUBLISHED else replace(POLICY, outputs=frozenset())
    conditions: list[dict[str, Any]] = decided_status(made(), policy, [record], NOW)["conditions"]
    return next(each for each in conditions if each["type"] == name)


def test_a_refusal_is_the_same_sentence_everywhere() -> None:
    sentence = condition(REFUSED, "Acting")["message"]
    assert sentence == f"not scaled to 3 replicas: {OWNED}"
    assert [event.message for event in events_of_record(None, REFUSED)] == [f"recommendation shop/web: {sentence}"]
    assert f"N{sentence[1:]}." in why(REFUSED)
    assert OWNED in page(REFUSED)


def test_a_change_of_a_size_is_the_same_sentence_everywhere() -> None:
    before = replace(PUBLISHED, targets=(replace(PUBLISHED.targets[0], recommended_replicas=2),))
    (event,) = events_of_record(before, PUBLISHED)
    assert event.message == f"recommendation shop/web: from 2 to 3 replicas: {RECORD.message}"
    assert "Recommended: from 2 to 3 replicas." in why(PUBLISHED)
    assert condition(PUBLISHED, "Ready")["message"] == RECORD.message
    assert RECORD.message in page(PUBLISHED)
    assert RECORD.message in why(PUBLISHED)


@pytest.mark.parametrize("record", [RECORD, PUBLISHED], ids=["written", "published"])
def test_the_effect_of_a_value_is_the_same_sentence_everywhere(record: Record) -> None:
    sentence = ACTION_TEXTS[record.targets[0].action]
    assert condition(record, "Acting")["message"] == sentence
    assert sentence in page(record)
    assert f"T{sentence[1:]}." in why(record)


@pytest.mark.parametrize("status", [Status.STALE, Status.ERROR])
def test_a_missing_value_has_the_same_reason_everywhere(status: Status) -> None:
    reason = "the query has no series: check the name of the metric"
    record = replace(RECORD, status=status, message=reason, replicas=None, steps=(), binding=None)
    assert condition(record, "Ready")["message"] == condition(record, "Acting")["message"] == reason
    assert reason in page(record)
    assert f"Status {status.value}: {reason}." in why(record)
