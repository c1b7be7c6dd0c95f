"""The level of a log line about a recommendation: a warning if a person has to act."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

import pytest

from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.kinds.resources.container_requests import RequestSizes
from recommender.running.polls.recommendation_log import RecommendationLog

WEB: Final = TargetReference("apps/v1", "Deployment", "shop", "web")
SCALED: Final = TargetOutcome(WEB, 2, TargetAction.SCALE, recommended_replicas=3)
REFUSED: Final = TargetOutcome(WEB, 2, TargetAction.REFUSED, "hpa/web scales it", recommended_replicas=3)
DECIDED: Final = Record(
    "web",
    "proportional",
    1_767_225_600.0,
    Status.OK,
    "linear/nodes: ceil(9 / 4)",
    replicas=3,
    steps=(Step("linear/nodes", 3, "ceil(9 / 4)"),),
    binding="linear/nodes",
    targets=(SCALED,),
)


@pytest.mark.parametrize("each", [None, WEB], ids=["one target", "forEach"])
@pytest.mark.parametrize(
    ("record", "level"),
    [
        pytest.param(DECIDED, logging.INFO, id="a size"),
        pytest.param(replace(DECIDED, targets=(REFUSED,)), logging.WARNING, id="a target that is refused"),
        pytest.param(replace(DECIDED, status=Status.HELD), logging.INFO, id="a value that is held"),
        pytest.param(replace(DECIDED, status=Status.STALE, replicas=None), logging.WARNING, id="no value"),
    ],
)
def test_what_a_person_has_to_correct_is_logged_as_a_warning(
    record: Record, level: int, each: TargetReference | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    RecommendationLog().changes([replace(record, each=each)])
    assert [line.levelno for line in caplog.records] == [level]


def test_a_refusal_is_news_of_a_kind_that_says_what_is_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log, sized = RecommendationLog(), replace(DECIDED, type="resources", details=RequestSizes({}))
    for targets in ((SCALED,), (REFUSED,), (REFUSED,)):
        log.changes([replace(sized, targets=targets)])
    assert [record.levelno for record in caplog.records] == [logging.INFO, logging.WARNING]
