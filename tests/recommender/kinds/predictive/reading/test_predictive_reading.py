"""The settings that are made from `predictive:` of the configuration file."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.kinds.predictive.predictive_settings import (
    Connections,
    ForEach,
    ModelName,
    Override,
    PredictiveSettings,
    ScaleDown,
    Schedule,
)
from recommender.kinds.predictive.reading.predictive_reader import PREDICTIVE
from tests.recommender.kinds.predictive.reading.predictive_text import read

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
        model: auto
        quantile: 0.98
        maxGrowth: 1.5
        maxOverHistory: 2
        budget: 20%
        scaleDown: {decay: 5%, window: 0s, drain: 30m}
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
            model=ModelName.AUTO,
            quantile=0.98,
            max_growth=1.5,
            max_over_history=2.0,
            budget_ratio=0.2,
            scale_down=ScaleDown(0.05, 0.0, 1800.0),
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
    "a time zone, and that of a schedule without one": (
        """
        timezone: America/New_York
        schedule:
        - {cron: "0 8 * * *", duration: 2h, minReplicas: 10}
        - {cron: "0 8 * * *", timezone: UTC, duration: 2h, minReplicas: 10}
        """,
        PredictiveSettings(
            timezone="America/New_York",
            schedules=(
                Schedule("0 8 * * *", "America/New_York", 7200.0, 10),
                Schedule("0 8 * * *", "UTC", 7200.0, 10),
            ),
        ),
    ),
    "holidays of a country": ("holidays: DE", PredictiveSettings(holidays=("DE",))),
    "holidays of Norway, which YAML takes for false": ("holidays: NO", PredictiveSettings(holidays=("NO",))),
    "holidays of parts": ("holidays: [DE-BY, AT]", PredictiveSettings(holidays=("DE-BY", "AT"))),
    "no headroom": ("headroom: 0%", PredictiveSettings(headroom_ratio=0.0)),
    "overshoot": (
        "{overshoot: 20%, connections: {limit: 1, metric: sum by (pod) (x)}}",
        PredictiveSettings(connections=Connections(1, "sum by (pod) (x)"), overshoot_ratio=0.2),
    ),
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
def test_every_model_name_is_accepted(model: ModelName) -> None:
    assert read(f"model: {model}") == (PredictiveSettings(model=model), [])


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
def test_keys_that_only_a_backtest_may_omit_are_required_otherwise(text: str, expected: list[str]) -> None:
    _, problems = read(text, PREDICTIVE)
    missing = [problem for problem in problems if "is missing" in problem.message]
    assert len(missing) == len(expected)
    for problem, beginning in zip(missing, expected, strict=True):
        assert str(problem).removeprefix("config.yaml:").startswith(beginning)


WORDS: Final = sorted(
    {
        *(each.key for each in PREDICTIVE.keys),
        *re.findall(r"[A-Za-z]+(?=:)", " ".join(text for text, _ in GOOD.values())),
    }
)
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
def test_any_input_gives_either_settings_or_problems(value: dict[str, object]) -> None:
    found, problems = read(json.dumps(value))
    assert (found is None) == bool(problems)
