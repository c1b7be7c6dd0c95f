"""The status of an object: its conditions, and when it is written."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adapter.metrics.rulebook.objects.rule_object_status import (
    LEAST_SECONDS,
    SERIES_SECONDS,
    apply_document,
    seconds_until_due,
    status_of,
)
from adapter.metrics.rulebook.objects.rule_object_verdict import KnownObject, Reason, RuleRefusal, TakenName, verdict_of
from tests.support.rule_objects import QUEUE, content_of, rule_object, spec_with

NOW: Final = "2026-02-01T00:00:00Z"
GOOD: Final = rule_object(QUEUE)
BAD: Final = rule_object(spec_with(QUEUE, metricsQuery=None))
SERVED: Final = KnownObject(GOOD, metrics=("jobs_waiting",), series=3)
PENDING: Final = KnownObject(GOOD, metrics=("jobs_waiting",))
TAKEN: Final = (TakenName("jobs_waiting", "the rule files"),)


def status(known: KnownObject, former: dict[str, Any] | None = None, now: str = NOW) -> dict[str, Any]:
    content = known.found.content
    return status_of(verdict_of(known), known.found.findings, content.generation, former or {}, now)


@pytest.mark.parametrize(
    ("known", "ready", "refused"),
    [
        (SERVED, ("True", "Served"), ("False", "Accepted")),
        (PENDING, ("Unknown", "LookUpPending"), ("False", "Accepted")),
        (KnownObject(GOOD, failed=True), ("Unknown", "LookUpFailed"), ("False", "Accepted")),
        (
            KnownObject(GOOD, metrics=("jobs_waiting",), series=2, failed=True),
            ("True", "Served"),
            ("False", "Accepted"),
        ),
        (KnownObject(GOOD, metrics=("jobs_waiting",), series=0), ("False", "NoSeries"), ("False", "Accepted")),
        (KnownObject(BAD), ("False", "InvalidRule"), ("True", "InvalidRule")),
        (KnownObject(GOOD, taken=TAKEN, series=3), ("False", "NameTaken"), ("True", "NameTaken")),
        (KnownObject(GOOD, metrics=("b",), taken=TAKEN, series=3), ("True", "Served"), ("True", "NameTaken")),
        (
            KnownObject(GOOD, RuleRefusal(Reason.TOO_MANY_RULES, "too many")),
            ("False", "TooManyRules"),
            ("True", "TooManyRules"),
        ),
    ],
)
def test_conditions_follow_from_the_state_of_the_object(
    known: KnownObject, ready: tuple[str, str], refused: tuple[str, str]
) -> None:
    conditions = {each["type"]: each for each in status(known)["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ready
    assert (conditions["Refused"]["status"], conditions["Refused"]["reason"]) == refused
    assert {each["observedGeneration"] for each in conditions.values()} == {1}


def test_the_message_of_a_refusal_says_what_to_do() -> None:
    written = status(KnownObject(BAD))
    assert "`metricsQuery` is missing" in written["conditions"][1]["message"]
    assert "write a query" in written["conditions"][1]["message"]
    assert written["findings"][0]["code"] == "missing-key"
    taken = status(KnownObject(GOOD, taken=TAKEN))["conditions"][0]["message"]
    assert taken == "in this namespace, jobs_waiting comes from the rule files: use another name"


def test_columns_show_the_first_metric_and_the_number_of_series() -> None:
    written = status(KnownObject(GOOD, metrics=("pods/a", "pods/b", "pods/c"), series=7))
    assert (written["metric"], written["series"]) == ("pods/a (+2)", 7)
    assert "series" not in status(PENDING)


def test_the_transition_time_is_that_of_the_last_change() -> None:
    before = status(PENDING)
    later = status(SERVED, before, "2026-02-01T00:01:00Z")
    assert [each["lastTransitionTime"] for each in later["conditions"]] == ["2026-02-01T00:01:00Z", NOW]


def test_an_unchanged_status_is_not_written_again() -> None:
    before = status(SERVED)
    assert seconds_until_due(status(SERVED, before, "2026-02-02T00:00:00Z"), before, 1e6) is None


def test_the_status_of_a_new_generation_is_written_at_once() -> None:
    assert seconds_until_due(status(SERVED), {}, 0.0) == 0.0


def test_the_status_of_one_generation_is_not_written_too_often() -> None:
    before = status(SERVED)
    wanted = status(KnownObject(GOOD, metrics=("jobs_waiting",), series=0), before)
    assert seconds_until_due(wanted, before, 1.0) == LEAST_SECONDS - 1.0
    assert seconds_until_due(wanted, before, LEAST_SECONDS) == 0.0


def test_a_status_that_was_unknown_is_written_as_soon_as_it_is_known() -> None:
    before = status(PENDING)
    assert seconds_until_due(status(SERVED, before), before, 0.0) == 0.0


def test_a_constantly_changing_number_of_series_is_written_rarely() -> None:
    before = status(SERVED)
    wanted = status(KnownObject(GOOD, metrics=("jobs_waiting",), series=4), before)
    assert seconds_until_due(wanted, before, 0.0) == SERIES_SECONDS


@pytest.mark.parametrize("known", [PENDING, KnownObject(GOOD, failed=True)])
def test_a_replica_that_knows_less_does_not_overwrite_the_status_of_another(known: KnownObject) -> None:
    before = status(SERVED)
    assert seconds_until_due(status(known, before), before, 1e6) is None


def test_replicas_with_the_same_findings_write_the_same_status() -> None:
    first = status(SERVED, {}, NOW)
    second = status(SERVED, first, "2026-02-01T00:00:01Z")
    assert first == second


def test_a_status_is_applied_to_the_object_with_its_uid() -> None:
    document = apply_document(content_of(QUEUE), status(SERVED))
    assert document["metadata"] == {"namespace": "shop", "name": "web", "uid": "uid-of-shop/web"}
    assert set(document) == {"apiVersion", "kind", "metadata", "status"}
