"""A recommender that is merely enabled gives HPAs what they need: it is scraped, and has rules and a Prometheus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from recommender.configuration.reading import read_configuration
from tests.helm.chart import NAMESPACE, HelmError, Object, Release, component_of, render
from tests.helm.notes import notes
from tests.helm.recommenders import (
    BACKENDS,
    COUNTED,
    EACH,
    LINEAR,
    PREDICTED,
    SIZED_CONTAINERS,
    SIZED_WORKLOADS,
    configuration,
)

if TYPE_CHECKING:
    from pathlib import Path

OPERATOR = ("--api-versions", "monitoring.coreos.com/v1/ServiceMonitor")
NAME = "tidewatch-recommender"
MONITORS = {"ServiceMonitor", "PodMonitor"}
OF_THE_SERVICE = f'namespace="{NAMESPACE}",service="{NAME}-metrics"'
OF_THE_POD = f'namespace="{NAMESPACE}",job="{NAMESPACE}/{NAME}-metrics"'
OF_ANY_SCRAPE = f'namespace=~"|{NAMESPACE}"'


def with_recommender(config: object, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - values of the chart
    return {"recommender": {"enabled": True, "config": config}, **values}


def monitors(release: Release) -> list[tuple[str, str]]:
    return [(one["kind"], component_of(one)) for one in release.objects if one["kind"] in MONITORS]


@pytest.mark.parametrize(
    ("metrics", "options", "expected", "matchers"),
    [
        ({}, OPERATOR, [("ServiceMonitor", "recommender")], OF_THE_SERVICE),
        ({}, (), [], OF_ANY_SCRAPE),
        ({"serviceMonitor": {"enabled": False}}, OPERATOR, [], OF_ANY_SCRAPE),
        ({"service": {"enabled": True}}, OPERATOR, [], OF_ANY_SCRAPE),
        (
            {"podMonitor": {"enabled": True}},
            OPERATOR,
            [("PodMonitor", "adapter"), ("PodMonitor", "recommender")],
            OF_THE_POD,
        ),
        (
            {"serviceMonitor": {"enabled": True}},
            (),
            [("ServiceMonitor", "adapter"), ("ServiceMonitor", "recommender")],
            OF_THE_SERVICE,
        ),
    ],
)
def test_the_monitor_follows_the_recommender_and_the_rules_follow_the_monitor(
    metrics: dict[str, Any], options: tuple[str, ...], expected: list[tuple[str, str]], matchers: str
) -> None:
    release = render(with_recommender(configuration(LINEAR), metrics=metrics), *options)
    assert monitors(release) == expected
    rules = release.one("ConfigMap", "tidewatch-adapter-rules")["data"]["15-recommendations.yaml"]
    assert rules.count(f"{{{matchers},") == 20
    names = {one["metadata"]["name"] for one in release.all("Service")}
    assert all(f"tidewatch-{component}-metrics" in names for kind, component in expected if kind == "ServiceMonitor")


def test_without_a_recommender_the_operator_changes_nothing() -> None:
    assert render({}, *OPERATOR) == render({})


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ({}, (), "because this cluster has no kind ServiceMonitor"),
        ({}, (), "scrapes /metrics on port 8080 of these pods"),
        ({}, OPERATOR, "set metrics.serviceMonitor.labels to them"),
        ({"metrics": {"serviceMonitor": {"labels": {"release": "prom"}}}}, OPERATOR, "release=prom"),
        ({"metrics": {"podMonitor": {"enabled": True}}}, OPERATOR, "set metrics.podMonitor.labels to them"),
        ({"metrics": {"service": {"enabled": True}}}, OPERATOR, f"scrapes the Service {NAME}-metrics"),
    ],
)
def test_notes_say_why_hpas_cannot_read_recommendations_yet(
    values: dict[str, Any], options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    assert said in notes(with_recommender(configuration(LINEAR), **values), tmp_path, *options)


CHARTS = {
    "url": "https://prom.example:9090",
    "matchers": 'cluster="a"',
    "credentials": {"secret": "c", "ca": "ca.crt", "username": "robot", "password": "word"},
}
WRITTEN = {
    "url": "https://prom.example:9090",
    "matchers": 'cluster="a"',
    "caFile": "/etc/tidewatch/prometheus/ca.crt",
    "basicAuth": {"username": "robot", "passwordFile": "/etc/tidewatch/prometheus/word"},
}
OWN = {"url": "http://mine:9090", "matchers": 'cluster="b"'}
# The last entry ends in a text that would take up what is appended with its indentation.
_LAST = """\
- name: chat
  targets: [{apiVersion: apps/v1, kind: Deployment, namespace: chat, name: gateway}]
  outputs: [metric]
  predictive:
    loadPerReplica: 5
    horizon: 2m
    load: |+
      sum(connections)

"""
ENDS_IN_A_TEXT = yaml.safe_dump(configuration(LINEAR)) + _LAST


def volumes(release: Release) -> set[str]:
    return {volume["name"] for volume in release.recommender["volumes"]}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (configuration(PREDICTED), WRITTEN),
        (configuration(LINEAR, EACH), WRITTEN),
        (configuration(COUNTED), WRITTEN),
        (configuration(SIZED_CONTAINERS), WRITTEN),
        (yaml.safe_dump(configuration(SIZED_WORKLOADS)), WRITTEN),
        # An object may have queries.
        (configuration(LINEAR, recommendationObjects={"enabled": True}), WRITTEN),
        (configuration(LINEAR, recommendationObjects={"enabled": False}), None),
        ("# Mine.\n" + yaml.safe_dump(configuration(PREDICTED)), WRITTEN),
        (yaml.safe_dump(configuration(PREDICTED)).rstrip("\n"), WRITTEN),
        (ENDS_IN_A_TEXT, WRITTEN),
        (configuration(LINEAR), None),
        (configuration(PREDICTED, prometheus=OWN), OWN),
        # Nothing can follow these.
        (json.dumps(configuration(PREDICTED)), None),
        (yaml.safe_dump(configuration(PREDICTED)) + "...\n", None),
        (yaml.safe_dump(configuration(PREDICTED)) + "---\n", None),
    ],
)
def test_a_configuration_with_queries_and_without_a_prometheus_gets_the_chart_s(
    config: Any,  # noqa: ANN401 - a text or a mapping
    expected: Object | None,
) -> None:
    release = render(with_recommender(config, prometheus=CHARTS))
    text = release.one("ConfigMap", NAME)["data"]["recommender.yaml"]
    given = next(yaml.safe_load_all(config)) if isinstance(config, str) else config
    (read,) = [document for document in yaml.safe_load_all(text) if document]
    assert read == given | ({"prometheus": expected} if expected else {})
    if isinstance(config, str):
        # Messages name lines of the user's own file.
        assert text.startswith(config.rstrip("\n"))
    if expected:
        assert read_configuration(text, "recommender.yaml").refused == ()
    assert ("prometheus" in volumes(release)) == (expected is not None)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (configuration(PREDICTED), "so the recommender asks the one of the chart, http://prometheus.default.svc:9090."),
        (configuration(PREDICTED), "which is only a guess: set prometheus.url"),
        (json.dumps(configuration(PREDICTED)), "so its entries are refused: write prometheus: {url: …} into it"),
    ],
)
def test_notes_say_which_prometheus_the_recommender_queries(config: object, said: str, tmp_path: Path) -> None:
    assert said in notes({**with_recommender(config), "adapter": {"enabled": False}}, tmp_path)


@pytest.mark.parametrize("matchers", ['cluster="a"', ""])
def test_backends_stay_as_they_are_beside_the_chart_s_prometheus(matchers: str) -> None:
    config = configuration(EACH | {"backend": "fleet"}, prometheus=BACKENDS)
    release = render(with_recommender(config, prometheus={"url": "http://other:9090", "matchers": matchers}))
    assert yaml.safe_load(release.one("ConfigMap", NAME)["data"]["recommender.yaml"]) == config


def test_a_backend_that_is_the_chart_s_prometheus_needs_its_matchers() -> None:
    chart = {"url": "http://prometheus:9090/", "matchers": 'cluster="a"'}
    config = configuration(LINEAR, prometheus=BACKENDS)
    with pytest.raises(HelmError, match=r"the backend local of recommender\.config has no matchers"):
        render(with_recommender(config, prometheus=chart))
    local, fleet = BACKENDS
    render(with_recommender(config | {"prometheus": [local | {"matchers": 'cluster="a"'}, fleet]}, prometheus=chart))


def test_notes_do_not_mention_prometheus_if_none_is_needed(tmp_path: Path) -> None:
    values = {**with_recommender(configuration(LINEAR)), "adapter": {"enabled": False}}
    assert "Prometheus is" not in notes(values, tmp_path)
