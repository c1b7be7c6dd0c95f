"""The address of Prometheus and the matchers: what the programs would refuse, or everybody could read, is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.promql.tree import SelectorNode
from adapter.foundation.promql.tree_parser import parse_query
from tests.e2e.install.chart_values import recommender
from tests.helm.chart import HelmError, render
from tests.helm.recommenders import configuration

if TYPE_CHECKING:
    from collections.abc import Callable

WITH_CREDENTIALS = "https://reader:hunter2@prometheus"
VISIBLE = "contains credentials, which would be visible to everybody who may read pods or ConfigMaps"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"prometheus": {"url": WITH_CREDENTIALS}},
            f"prometheus.url {VISIBLE}: remove them, and name the Secret that has them in prometheus.credentials",
        ),
        (
            {"prometheus": {"url": "{{ .Values.global.address }}"}, "global": {"address": WITH_CREDENTIALS}},
            "prometheus.url contains credentials",
        ),
        (
            {"rules": {"prometheus": [{"name": "eu", "url": WITH_CREDENTIALS}]}},
            f"the url of the backend eu {VISIBLE}: remove them, and write basicAuth with username and passwordFile",
        ),
        (
            recommender(configuration(prometheus={"url": WITH_CREDENTIALS})),
            "recommender.config: the url of prometheus contains credentials",
        ),
        (
            recommender(configuration(prometheus=[{"name": "eu", "url": WITH_CREDENTIALS}])),
            "recommender.config: the url of the backend eu contains credentials",
        ),
        (
            recommender(configuration(prometheus=[{"name": "eu", "url": "https://a"}, {"url": WITH_CREDENTIALS}])),
            "recommender.config: the url of prometheus[1] contains credentials",
        ),
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(values: dict[str, Any], message: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(values)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "reader:hunter2@prometheus:9090",
        "reader:hunter2/2@prometheus",
        "https://reader:hunter2#2@prometheus",
        "https://reader:hunter2?2@prometheus",
        "https://reader:hunter2/2@prometheus",
        "https://reader:hunter2/:9090/@prometheus",
        "https://reader:123/hunter2@prometheus",
        "https://reader.team:12345/hunter2@prometheus:9090/a",
        "https://hunter2@prometheus",
        "//reader:hunter2@prometheus",
    ],
)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda url: {"prometheus": {"url": url}}, "prometheus.url contains credentials"),
        (
            lambda url: {"prometheus": {"url": "{{ .Values.global.address }}"}, "global": {"address": url}},
            "prometheus.url contains credentials",
        ),
        (
            lambda url: {"rules": {"prometheus": [{"name": "eu", "url": url}]}},
            "the url of the backend eu contains credentials",
        ),
        (
            lambda url: recommender(configuration(prometheus={"url": url})),
            "recommender.config: the url of prometheus contains credentials",
        ),
    ],
    ids=["value", "template", "rules", "recommender"],
)
def test_credentials_are_found_without_a_scheme_and_with_any_password(
    values: Callable[[str], dict[str, Any]], url: str, message: str
) -> None:
    with pytest.raises(HelmError) as refused:
        render(values(url))
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://prometheus/team@eu", "https://[::1]:9090/team:a@eu"])
def test_an_at_sign_in_a_path_is_no_credential(url: str) -> None:
    render({"prometheus": {"url": url}, "rules": {"prometheus": [{"name": "eu", "url": url}]}})
    with pytest.raises(HelmError) as refused:
        render({"prometheus": {"url": url, "path": "/a"}})
    assert "prometheus.path: prometheus.url has a path already" in str(refused.value)
    assert "team" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://prometheus/a?team@eu", "https://prometheus/a b/team@eu"])
def test_an_address_with_an_at_sign_is_not_repeated_where_it_cannot_be_used(url: str) -> None:
    with pytest.raises(HelmError) as refused:
        render({"prometheus": {"url": url}})
    assert "prometheus.url is not the address of a Prometheus: write http://HOST" in str(refused.value)
    assert "team" not in str(refused.value)


@pytest.mark.parametrize(
    "written",
    [
        "cluster=eu",
        '{cluster="eu"}',
        'cluster="eu" region="a"',
        'cluster:"eu"',
        "eu",
        'cluster="eu" // prod',
        '# cluster="eu"',
        'cluster="eu" # prod, region="a"\nregion="b"',
    ],
)
@pytest.mark.parametrize(
    ("values", "place"),
    [
        (lambda text: {"prometheus": {"matchers": text}}, "prometheus.matchers"),
        (lambda text: {"rules": {"recommenderMatchers": text}}, "rules.recommenderMatchers"),
        (
            lambda text: {"rules": {"prometheus": [{"name": "eu", "url": "https://a", "matchers": text}]}},
            "rules.prometheus: the matchers of the backend eu",
        ),
        (
            lambda text: recommender(configuration(prometheus={"url": "https://a", "matchers": text})),
            "recommender.config: the matchers of prometheus",
        ),
        (
            lambda text: recommender(configuration(prometheus=[{"name": "eu", "url": "https://a", "matchers": text}])),
            "recommender.config: the matchers of the backend eu",
        ),
        (
            lambda text: recommender(configuration(prometheus=[{"name": None, "url": "https://a", "matchers": text}])),
            "recommender.config: the matchers of prometheus[0]",
        ),
    ],
)
def test_matchers_that_the_programs_could_not_read_are_refused(
    values: Callable[[str], dict[str, Any]], place: str, written: str
) -> None:
    with pytest.raises(HelmError) as refused:
        render(values(written))
    assert f"{place}: {written} is not a list of matchers: " in str(refused.value)


@pytest.mark.parametrize(
    "written",
    [
        'cluster="eu-1"',
        "cluster='eu-1'",
        "cluster=`eu-1`",
        ' cluster = "eu-1" , region!~"a|b\\"c" , ',
        '"service.name"=~".+",a!=""',
        'cluster="eu#1" # prod',
        '# of "all" \n  cluster="eu-1",# it\'s one\r\n# prod\nregion="a", # last',
        "cluster # a\n = # b\n '#\"' # }",
    ],
)
def test_every_list_of_matchers_is_accepted(written: str) -> None:
    matchers = Matchers.read(written)
    values = {
        "prometheus": {"matchers": written},
        "rules": {"recommenderMatchers": written, "shipped": ["recommendations"]},
        **recommender(configuration(prometheus={"url": "https://a", "matchers": written})),
    }
    release = render(values)
    assert f"--prometheus-matchers={written}" in release.pod["containers"][0]["args"]
    for rule in yaml.safe_load(release.one("ConfigMap", "tidewatch-adapter-rules")["data"]["15-recommendations.yaml"])[
        "rules"
    ]:
        selector = parse_query(rule["seriesQuery"])
        assert isinstance(selector, SelectorNode)
        assert set(matchers.conditions) <= set(selector.matchers)
