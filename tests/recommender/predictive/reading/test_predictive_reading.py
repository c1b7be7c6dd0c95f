"""`predictive:` of the configuration file: what is read, and how each mistake is reported."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.documents.load import load_documents
from recommender.predictive.reading.settings import KEYS, missing_for_running, read_predictive
from recommender.predictive.settings import (
    Connections,
    ForEach,
    ModelName,
    Override,
    PredictiveSettings,
    ScaleDown,
    Schedule,
)

if TYPE_CHECKING:
    from adapter.documents.tree import DocumentProblem, Node


def root_of(text: str) -> Node:
    root = load_documents(text, "config.yaml").root
    assert root is not None
    return root


def read(text: str) -> tuple[PredictiveSettings | None, list[DocumentProblem]]:
    problems: list[DocumentProblem] = []
    return read_predictive(root_of(text), problems), problems


GOOD: Final = {
    "defaults": ("load: sum(connections)", PredictiveSettings(load="sum(connections)")),
    "nothing": ("{}", PredictiveSettings()),
    "every key": (
        """
        load: sum by (team, app) (connections{job="gateway"})
        loadPerReplica: 25k
        horizon: 2m
        history: 28d
        headroom: 150%
        minReplicas: 2
        maxReplicas: 40
        model: holt-winters
        quantile: 0.98
        maxGrowth: 1.5
        scaleDown: {decay: 5%, window: 0s, drain: 30m}
        overshoot: 20%
        forEach: {namespace: team, name: app, kind: StatefulSet, max: 500}
        connections: {limit: 25000, reconnectDrop: 40%, reconnectHold: 0s}
        schedule:
        - {cron: "0 8 * * mon-fri", timezone: Europe/Berlin, duration: 2h, minReplicas: 10}
        - {cron: "30 8 * * *", timezone: UTC, duration: 1d12h, minReplicas: 5}
        override: {replicas: 7, until: "2027-01-15T09:00:00+01:00"}
        freezeUnless: up{job="gateway"}
        """,
        PredictiveSettings(
            load='sum by (team, app) (connections{job="gateway"})',
            load_per_replica=25_000.0,
            horizon_seconds=120.0,
            history_seconds=28 * 86_400.0,
            headroom_ratio=1.5,
            min_replicas=2,
            max_replicas=40,
            model=ModelName.HOLT_WINTERS,
            quantile=0.98,
            max_growth=1.5,
            scale_down=ScaleDown(0.05, 0.0, 1800.0),
            overshoot_ratio=0.2,
            for_each=ForEach("team", "app", "StatefulSet", 500),
            connections=Connections(25_000, None, 0.4, 0.0),
            schedules=(
                Schedule("0 8 * * mon-fri", "Europe/Berlin", 7200.0, 10),
                Schedule("30 8 * * *", "UTC", 129_600.0, 5),
            ),
            override=Override(7, 1_800_000_000.0),
            freeze_unless='up{job="gateway"}',
        ),
    ),
    "defaults of mappings": (
        "{scaleDown: {}, forEach: {namespace: a, name: b}, connections: {limit: 1}}",
        PredictiveSettings(scale_down=ScaleDown(), for_each=ForEach("a", "b"), connections=Connections(1)),
    ),
    "pods one by one": (
        "connections: {limit: 1, metric: sum by (pod) (x)}",
        PredictiveSettings(connections=Connections(1, "sum by (pod) (x)")),
    ),
    "null is absent": (
        "{load: null, history: null, model: , schedule: , override: , scaleDown: }",
        PredictiveSettings(),
    ),
    "no headroom": ("headroom: 0%", PredictiveSettings(headroom_ratio=0.0)),
    "overshoot that is off": (
        "{overshoot: 0%, connections: {limit: 1}}",
        PredictiveSettings(connections=Connections(1)),
    ),
    "load per replica below 1": ("loadPerReplica: 500m", PredictiveSettings(load_per_replica=0.5)),
    "an override that is over": (
        "override: {replicas: 1, until: 2020-01-01T00:00:00Z}",
        PredictiveSettings(override=Override(1, 1_577_836_800.0)),
    ),
}


@pytest.mark.parametrize(("text", "expected"), GOOD.values(), ids=GOOD)
def test_settings_are_read(text: str, expected: PredictiveSettings) -> None:
    assert read(text) == (expected, [])


@pytest.mark.parametrize("model", [*ModelName])
def test_each_model_has_its_name(model: ModelName) -> None:
    assert read(f"model: {model}") == (PredictiveSettings(model=model), [])


PERCENT: Final = "write a percentage, such as 5%"
DURATION: Final = "write numbers with units, such as 90s, 1h30m or 14d"
BAD: Final = {
    "not a mapping": (
        "[]",
        ["1: expected a mapping (`key: value` lines), found a list: write a mapping (`key: value` l"],
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
    "queries": (
        "load: ''\nfreezeUnless: []\nconnections: {limit: 1, metric: ' '}",
        [
            "1: the query is empty: write the PromQL of a query",
            "2: expected a text, found a list: write a text",
            "3: the query is empty: write the PromQL of a query",
        ],
    ),
    "load per replica": ("loadPerReplica: 0", ["1: `loadPerReplica` is 0: write what one replica serves, above 0"]),
    "negative load per replica": ("loadPerReplica: -1", ["1: the quantity -1 is negative: write 0 or more"]),
    "huge load per replica": ("loadPerReplica: 1e900", ["1: `loadPerReplica` is 1e900: write what one replica serves"]),
    "load per replica as a text": (
        "loadPerReplica: many",
        ["1: 'many' is no quantity: write a quantity, such as 100m"],
    ),
    "durations": (
        (
            "horizon: 120\nhistory: 14 days\nscaleDown:\n  window: 25h\n  drain: 0s\n"
            "connections: {limit: 1, reconnectHold: -1s}"
        ),
        [
            f"1: '120' is no duration: a number has no unit: {DURATION}",
            f"2: '14 days' is no duration: ' days' is no unit of time: {DURATION}",
            "4: the duration 25h0m0s is out of range: write 0s to 1d",
            "5: the duration 0s is out of range: write 1s to 7d",
            "6: the duration -1s is out of range: write 0s to 1h0m0s",
        ],
    ),
    "long durations": (
        "horizon: 2d\nhistory: 61d",
        [
            "1: the duration 2d is out of range: write 1s to 1d",
            "2: the duration 61d is out of range: write 10m0s to 60d",
        ],
    ),
    "history below horizon": (
        "horizon: 1h\nhistory: 30m",
        ["2: `history` is 30m0s, shorter than `horizon`, 1h0m0s: write several days, such as 14d"],
    ),
    "percentages": (
        "headroom: 0.1\nscaleDown: {decay: 0%}\novershoot: 1001%\nconnections: {limit: 1, reconnectDrop: 100%}",
        [
            f"1: '0.1' is no percentage from 0% to 1000%: {PERCENT}",
            "2: the percentage is 0%: write more, such as 5%, or remove the key",
            f"3: '1001%' is no percentage from 0% to 1000%: {PERCENT}",
            f"4: '100%' is no percentage from 0% to 99%: {PERCENT}",
        ],
    ),
    "replicas": (
        "minReplicas: 0\nmaxReplicas: 1.5",
        [
            "1: `minReplicas` is 0: write a whole number from 1 to 2147483647",
            "2: expected a whole number, such as 16, found the text '1.5': write a whole number, such as 16",
        ],
    ),
    "max below min": (
        "minReplicas: 5\nmaxReplicas: 4",
        ["2: `maxReplicas` is 4, less than `minReplicas`, which is 5: raise it"],
    ),
    "models": ("model: holtwinters", ["1: unknown model 'holtwinters': did you mean holt-winters?"]),
    "no model at all": ("model: x", ["1: unknown model 'x': the models are auto, reactive, headroom, linear"]),
    "numbers": (
        "quantile: 0.5\nmaxGrowth: 1",
        [
            "1: `quantile` is 0.5: write a number between 0.5 and 1, such as 0.95",
            "2: `maxGrowth` is 1: write a factor above 1, up to 1000, such as 2.0",
        ],
    ),
    "other numbers": (
        "quantile: 1.0\nmaxGrowth: 1e9",
        [
            "1: `quantile` is 1: write a number between 0.5 and 1, such as 0.95",
            "2: `maxGrowth` is 1e+09: write a factor above 1, up to 1000, such as 2.0",
        ],
    ),
    "texts as numbers": (
        "quantile: 95%\nmaxGrowth: '2'",
        [
            "1: expected a number, such as 16 or 2.5, found the text '95%': write a number, such as 16 or 2.5",
            "2: expected a number, such as 16 or 2.5, found the text '2': write a number, such as 16 or 2.5",
        ],
    ),
    "overshoot alone": (
        "overshoot: 20%",
        ["1: `overshoot` has no effect without `connections`, which state when a pod is full: write connections: {li"],
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
        "forEach:\n  namespace: a-b\n  kind: deployment\n  max: 0",
        [
            "2: `forEach.name` is missing: write name: deployment",
            "2: 'a-b' is not the name of a Prometheus label: write the name of the label alone, such as namespace",
            "3: `forEach` does not know the kind 'deployment': did you mean Deployment?",
            "4: `max` is 0: write a whole number from 1 to 100000",
        ],
    ),
    "series of other kinds": (
        "forEach: {namespace: a, name: b, kind: X}",
        ["1: `forEach` does not know the kind 'X': the kinds are Deployment, StatefulSet, ReplicaSet, Replication"],
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
            "2: the duration 30s is out of range: write 1m0s to 31d",
            "2: `minReplicas` is 0: write a whole number from 1 to 2147483647",
            "3: '@daily' has 1 fields instead of 5: write minute, hour, day of the month, month and day of the week",
            "3: '../UTC' is not a time zone: write its IANA name, such as Europe/Berlin or UTC",
            "3: the duration 32d is out of range: write 1m0s to 31d",
            "3: expected a whole number, such as 16, found the text 'x': write a whole number, such as 16",
            "4: expected a text, found a list: write a text",
            "4: 'Europe/Berln' is not a time zone: write its IANA name, such as Europe/Berlin or UTC",
            "5: `schedule.cron` is missing: write cron: 0 8 * * mon-fri",
            "5: `schedule.timezone` is missing: write timezone: Europe/Berlin",
            "5: `schedule.duration` is missing: write duration: 2h",
            "5: `schedule.minReplicas` is missing: write minReplicas: 10",
            "6: expected a mapping (`key: value` lines), found null: write a mapping (`key: value` lines)",
        ],
    ),
    "a schedule that is no list": (
        "{maxReplicas: 3, schedule: {cron: x}}",
        ["1: expected a list (lines that start with `- `), found a mapping: write a list (lines that start with `- `)"],
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{load: x, loadPerReplica: 1, horizon: 1m}", []),
        ("{load: x}", ["1: `predictive.loadPerReplica` is missing", "1: `predictive.horizon` is missing"]),
        (
            "\nhorizon: null\nloadPerReplica: 1",
            [
                "2: `predictive.load` is missing: write load: sum(connections)",
                "2: `predictive.horizon` is missing: write",
            ],
        ),
        ("{load: x, loadPerReplicas: 1, horizons: 1m}", []),
        ("{load: x, loadPerReplica: wrong, horizon: wrong}", []),
    ],
)
def test_what_only_a_backtest_can_do_without_is_known(text: str, expected: list[str]) -> None:
    problems = missing_for_running(root_of(text).mapping())
    assert len(problems) == len(expected)
    for problem, beginning in zip(problems, expected, strict=True):
        assert str(problem).removeprefix("config.yaml:").startswith(beginning)


WORDS: Final = sorted({*KEYS, *re.findall(r"[A-Za-z]+(?=:)", " ".join(text for text, _ in GOOD.values()))})
VALUES: Final = st.recursive(
    st.sampled_from(
        [None, True, 0, 1, -1, 2.5, 10**30, "5%", "1m", "", "a", "* * * * *", "UTC", "auto", "\x00", "9" * 50]
    )
    | st.text(alphabet="aéµ٣1-:%/. ", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50)
@given(value=st.dictionaries(st.sampled_from(WORDS), VALUES, min_size=1, max_size=6))
def test_anything_is_settings_or_problems(value: dict[str, object]) -> None:
    found, problems = read(json.dumps(value))
    assert (found is None) == bool(problems)
