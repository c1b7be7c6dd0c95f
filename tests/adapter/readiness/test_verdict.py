from __future__ import annotations

import pytest

from adapter.readiness.limit import connection_limit
from adapter.readiness.verdict import KnownLoad, ReadinessRules, readiness_verdict

LIMIT = connection_limit(100, 0.9)
RULES = ReadinessRules("open", LIMIT, stale_after_seconds=3.0)
FULL = KnownLoad().after_value(LIMIT, 100, 10.0)
OPEN = KnownLoad().after_value(LIMIT, 50, 10.0)
REFUSED = "127.0.0.1:9000 cannot be reached: Connection refused"


@pytest.mark.parametrize(
    ("known", "now", "is_ready", "reason"),
    [
        (KnownLoad(), 10.0, True, "ready, because open is unknown: the metric has not been read yet"),
        (KnownLoad().after_failure(REFUSED), 10.0, True, f"ready, because open is unknown: {REFUSED}"),
        (OPEN, 10.5, True, "ready: open is 50, below the limit of 100"),
        (KnownLoad().after_value(LIMIT, 99, 10.0), 10.5, True, "ready: open is 99, below the limit of 100"),
        (OPEN.after_value(LIMIT, 99, 11.0), 11.5, True, "ready: open is 99, below the limit of 100"),
        (FULL, 10.5, False, "not ready: open is 100, the limit is 100; ready again below 90"),
        (
            FULL.after_value(LIMIT, 90, 11.0),
            11.0,
            False,
            "not ready: open is 90, the limit is 100; ready again below 90",
        ),
        (FULL.after_value(LIMIT, 89, 11.0), 11.0, True, "ready: open is 89, below the limit of 100"),
        (
            FULL.after_failure(REFUSED),
            13.0,
            False,
            f"not ready: open is 100, the limit is 100; ready again below 90 (3.0 s old: {REFUSED})",
        ),
        (FULL.after_failure(REFUSED), 13.1, True, f"ready, because open is unknown: no value for 3 s: {REFUSED}"),
        (FULL, 20.0, True, "ready, because open is unknown: no value for 10 s: a read has not ended"),
    ],
)
def test_the_verdict_follows_the_load_and_its_age(known: KnownLoad, now: float, *, is_ready: bool, reason: str) -> None:
    verdict = readiness_verdict(RULES, known, now)
    assert (verdict.is_ready, verdict.reason) == (is_ready, reason)


@pytest.mark.parametrize("known", [KnownLoad(), FULL.after_failure(REFUSED)])
def test_an_unknown_load_has_no_number(known: KnownLoad) -> None:
    assert readiness_verdict(RULES, known, 99.0).connections is None


def test_a_full_pod_stays_full_over_an_outage_until_it_is_below_the_ratio() -> None:
    known = FULL.after_failure(REFUSED).after_failure(REFUSED).after_value(LIMIT, 95, 60.0)
    assert not readiness_verdict(RULES, known, 60.0).is_ready
