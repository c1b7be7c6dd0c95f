"""Each mistake in `predictive:` is reported with its line and its repair."""

from __future__ import annotations

from typing import Final

import pytest

from tests.recommender.kinds.predictive.reading.predictive_text import read

PERCENT: Final = "write a percentage"
DURATION: Final = "write numbers with units, such as 90s, 1h30m or 14d"
BAD: Final = {
    "not a mapping": (
        "[]",
        ["1: `predictive` is not a mapping: write a mapping with load, loadPerReplica, horizon, hpaSyncPeriod, his"],
    ),
    "unknown keys": (
        "loads: x\nscaleDown:\n  decays: 5%\nforEach: {namespace: a, name: b, kinds: x}\nx: 1",
        [
            "1: the key 'loads' is not known: did you mean 'load'?",
            "3: the key 'decays' is not known: did you mean 'decay'?",
            "4: the key 'kinds' is not known: did you mean 'kind'?",
            "5: the key 'x' is not known: remove it; the keys here are load, loadPerReplica, horizon",
        ],
    ),
    "limits of another kind": (
        "min: 1\nmax: 9",
        [
            "1: the key 'min' has no effect here: remove it: the fewest replicas are `minReplicas`",
            "2: the key 'max' has no effect here: remove it: the most replicas are `maxReplicas`",
        ],
    ),
    "queries": (
        "load: ''\nfreezeUnless: []\nconnections: {limit: 1, metric: ' '}",
        [
            "1: the query is empty: write the PromQL of a query",
            "2: a list is not a string: write a string",
            "3: the query is empty: write the PromQL of a query",
        ],
    ),
    "queries that no Prometheus can parse": (
        "load: sum(up\nfreezeUnless: up[5m\nconnections: {limit: 1, metric: 'sum(up) by (pod]'}",
        [
            "1: no version of Prometheus can parse the query: the ( of '(up' is never closed: correct it",
            "2: no version of Prometheus can parse the query: the [ of '[5m' is never closed: correct it",
            "3: no version of Prometheus can parse the query: the ( of '(pod]' is closed by a ]: correct it",
        ],
    ),
    "load per replica": (
        "loadPerReplica: 0",
        ["1: `loadPerReplica` is 0: write what one replica serves, above 0 and at most 1e15"],
    ),
    "negative load per replica": ("loadPerReplica: -1", ["1: `loadPerReplica` is -1: write 0 or more"]),
    "huge load per replica": (
        "loadPerReplica: 1e900",
        ["1: `loadPerReplica` is 1e900: write what one replica serves, above 0 and at most 1e15"],
    ),
    "a load per replica is shown as it is written": (
        "loadPerReplica: 1e400",
        ["1: `loadPerReplica` is 1e400: write what one replica serves, above 0 and at most 1e15"],
    ),
    "load per replica as a text": (
        "loadPerReplica: many",
        ["1: 'many' is not a quantity: write a quantity, such as 100m or 64Mi"],
    ),
    "durations": (
        (
            "horizon: 120\nhistory: 14 days\nscaleDown:\n  window: 25h\n  drain: 0s\n"
            "connections: {limit: 1, reconnectHold: -1s}"
        ),
        [
            f"1: '120' is not a duration: {DURATION}",
            f"2: '14 days' is not a duration: {DURATION}",
            "4: `window` is 25h: write a duration from 0s to 1d",
            "5: `drain` is 0s: write a duration from 1s to 7d",
            "6: `reconnectHold` is -1s: write a duration from 0s to 1h",
        ],
    ),
    "long durations": (
        "horizon: 2d\nhistory: 61d\nhpaSyncPeriod: 99999999999999d",
        [
            "1: `horizon` is 2d: write a duration from 1s to 1d",
            "2: `history` is 61d: write a duration from 10m to 60d",
            "3: `hpaSyncPeriod` is 99999999999999d: write a duration from 1s to 1h",
        ],
    ),
    "history below horizon": (
        "horizon: 1h\nhistory: 30m",
        ["2: `history` is 30m, shorter than `horizon`, 1h: write several days, such as 14d"],
    ),
    "percentages": (
        "headroom: 0.1\nscaleDown: {decay: 0%}\novershoot: 1001%\nconnections: {limit: 1, reconnectDrop: 100%}",
        [
            f"1: '0.1' is not a percentage: {PERCENT} from 0% to 1000%",
            "2: `decay` is 0%: write a percentage above 0% and below 100%, such as 5%",
            f"3: `overshoot` is 1001%: {PERCENT} from 0% to 1000%",
            f"4: `reconnectDrop` is 100%: {PERCENT} above 0% and below 100%",
        ],
    ),
    "replicas": (
        "minReplicas: 0\nmaxReplicas: 1.5",
        [
            "1: `minReplicas` is 0: write a whole number from 1 to 2147483647",
            "2: '1.5' is not a whole number: write a whole number from 1 to 2147483647",
        ],
    ),
    "max below min": (
        "minReplicas: 5\nmaxReplicas: 4",
        ["2: `maxReplicas` is 4, less than `minReplicas`, which is 5: raise it"],
    ),
    "budget": (
        "model: quantile\nbudget: 20%",
        [
            (
                "2: `budget` cannot be combined with `model: quantile`, which costs what it asks for: "
                "write `model: auto`, or delete `budget`"
            )
        ],
    ),
    "fits of many targets": (
        "model: holt-winters\nforEach: {namespace: a, name: b, max: 30}",
        [
            (
                "1: `model: holt-winters` is fitted to each target separately, to 24 at most: "
                "write `forEach.max: 24` or less, or another model, such as auto"
            )
        ],
    ),
    "season of many targets": (
        "season: 1h\nforEach: {namespace: a, name: b, max: 30}",
        [("1: `season` is for entries of 24 targets at most: write `forEach.max: 24` or less, or remove it")],
    ),
    "models": ("model: holtwinters", ["1: 'holtwinters' is not a model: did you mean holt-winters?"]),
    "unknown model": (
        "model: x",
        ["1: 'x' is not a model: write one of auto, reactive, headroom, linear, polynomial, seasonal, seasonal-held"],
    ),
    "numbers": (
        "quantile: 0.5\nmaxGrowth: 1",
        [
            "1: `quantile` is 0.5: write a number above 0.5 and below 1",
            "2: `maxGrowth` is 1: write a number above 1 and up to 1000",
        ],
    ),
    "other numbers": (
        "quantile: 1.0\nmaxGrowth: 1e9",
        [
            "1: `quantile` is 1.0: write a number above 0.5 and below 1",
            "2: `maxGrowth` is 1e9: write a number above 1 and up to 1000",
        ],
    ),
    "texts as numbers": (
        "quantile: 95%\nmaxGrowth: '2'",
        [
            "1: '95%' is not a number: write a number above 0.5 and below 1",
            "2: '2' is not a number: write a number above 1 and up to 1000",
        ],
    ),
    "holidays of an unknown country": (
        "holidays: DX",
        ["1: 'DX' is not a country whose holidays are known: did you mean DE, DJ, DK, DM, DO or DZ?"],
    ),
    "holidays of an unknown region": (
        "holidays:\n- AT\n- DE-BX\n- AT",
        [
            "3: 'DE-BX' is not a part of DE whose holidays are known: did you mean DE-BB, DE-BE, DE-BW or DE-BY?",
            "4: AT is listed twice, first in line 2: remove one of them",
        ],
    ),
    "holidays twice": ("holidays: [AT, AT]", ["1: AT is listed twice, first in line 1: remove one of them"]),
    "no holidays": ("holidays: []", ["1: `holidays` names no country: write one, such as DE, or remove the key"]),
    "holidays with a season that is not a week": (
        "season: 20h\nholidays: DE",
        ["2: `holidays` has no effect with `season: 20h`, which knows no days of the week: remove one of them"],
    ),
    "overshoot alone": (
        "overshoot: 20%",
        ["1: `overshoot` has no effect without `connections.metric`, which shows when a pod is full: write con"],
    ),
    "overshoot without a metric of pods": (
        "overshoot: 20%\nconnections: {limit: 25000}",
        ["1: `overshoot` has no effect without `connections.metric`, which shows when a pod is full: write con"],
    ),
    "connections": (
        "connections: {limit: 0}",
        ["1: `limit` is 0: write a whole number from 1 to 1000000000"],
    ),
    "connections without a limit": (
        "connections: {reconnectDrop: 30%}",
        ["1: `connections.limit` is missing: write limit: 25000"],
    ),
    "connections with a misspelt limit": (
        "connections: {limits: 3}",
        ["1: the key 'limits' is not known: did you mean 'limit'?"],
    ),
    "connections of series": (
        "forEach: {namespace: a, name: b}\nconnections:\n  limit: 1\n  metric: x",
        ["4: `connections.metric` cannot be used with `forEach`, since its series do not name their targets"],
    ),
    "series": (
        "forEach:\n  namespace: a b\n  kind: deployment\n  max: 0",
        [
            "2: `forEach.name` is missing: write name: deployment",
            "2: 'a b' is not the name of a Prometheus label: write the name of the label alone, such as namespace",
            "3: 'deployment' is not a kind of target: did you mean Deployment?",
            "4: `max` is 0: write a whole number from 1 to 100000",
        ],
    ),
    "series of other kinds": (
        "forEach: {namespace: a, name: b, kind: X}",
        ["1: 'X' is not a kind of target: write one of Deployment, StatefulSet, ReplicaSet, ReplicationController"],
    ),
    "schedules": (
        """schedule:
- {cron: '61 * * * *', timezone: Europe, duration: 30s, minReplicas: 0}
- {cron: '@daily', timezone: ../UTC, duration: 32d, minReplicas: x}
- {cron: [], timezone: Europe/Berln, duration: 1m, minReplicas: 1}
- {}
-
""",
        [
            "2: 61 is not the minute of a cron expression: write 0 to 59",
            "2: 'Europe' is not a time zone: write its IANA name, such as Europe/Berlin or UTC",
            "2: `duration` is 30s: write a duration from 1m to 31d",
            "2: `minReplicas` is 0: write a whole number from 1 to 2147483647",
            "3: '@daily' has 1 fields instead of 5: write minute, hour, day of the month, month and day of the week",
            "3: '../UTC' is not a time zone: write its IANA name, such as Europe/Berlin or UTC",
            "3: `duration` is 32d: write a duration from 1m to 31d",
            "3: 'x' is not a whole number: write a whole number from 1 to 2147483647",
            "4: a list is not a string: write a string",
            "4: 'Europe/Berln' is not a time zone: write its IANA name, such as Europe/Berlin or UTC",
            "5: `schedule.cron` is missing: write cron: 0 8 * * mon-fri",
            "5: `schedule.duration` is missing: write duration: 2h",
            "5: `schedule.minReplicas` is missing: write minReplicas: 10",
            "6: `schedule` is not a mapping: write a mapping with cron, timezone, duration, minReplicas",
        ],
    ),
    "a schedule that is not a list": (
        "{maxReplicas: 3, schedule: {cron: x}}",
        ["1: a mapping is not a list: write lines that start with `- `"],
    ),
    "a schedule above the maximum": (
        "maxReplicas: 3\nschedule:\n- {cron: '0 8 * * *', timezone: UTC, duration: 1h, minReplicas: 4}",
        ["3: `schedule` asks for 4 replicas, but `maxReplicas` is 3: lower one, or raise the other"],
    ),
    "an override without an end": (
        "override: {replicas: 3}",
        ["1: `override.until` is missing: write until: 2026-11-21T06:00:00Z"],
    ),
    "override": (
        "override:\n  replicas: -1\n  until: 2026-11-21",
        [
            "2: `replicas` is -1: write a whole number from 1 to 2147483647",
            "3: '2026-11-21' is not a time with a zone (RFC 3339): write it as 2026-11-21T06:00:00Z",
        ],
    ),
    "an override without a zone": (
        "override: {replicas: 3, until: 2026-11-21T06:00:00}",
        ["1: '2026-11-21T06:00:00' is not a time with a zone (RFC 3339): write it as 2026-11-21T06:00:00Z"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD)
def test_every_problem_is_reported_with_its_line_and_repair(text: str, expected: list[str]) -> None:
    found, problems = read(text)
    assert found is None
    assert len(problems) == len(expected)
    for problem, beginning in zip(problems, expected, strict=True):
        assert str(problem).removeprefix("config.yaml:").startswith(beginning)
