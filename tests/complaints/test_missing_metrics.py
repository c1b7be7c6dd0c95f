"""Metrics were missing, and nothing said why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.complaints.harness import COMPLAINTS, CONNECTIONS_RULE, OBJECTS, QUEUE_RULE, RULES
from tests.support.caller import CUSTOM, EXTERNAL, Caller
from tests.support.forked import run
from tests.support.harnesses import NAMESPACES, PODS
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.forked import Ended

WEB = {"labelSelector": "app=web"}
AGGREGATED = ("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
FLAWED = f"""\
rules:
- seriesQuery: 'a{{namespace!="",pod!=""}}'
  resources: {PODS}
  name: {{matches: '^(?!b)(.*)$'}}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- seriesQuery: ''
  resources: {PODS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- {{}}
- seriesQuery: '{{job=~".*"}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'no_such_series{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'connections{{namespace!="",pod!=""}}'
  name: {{as: refused_by_prometheus}}
  resources: {PODS}
  metricsQuery: 'no_such_function(<<.Series>>{{<<.LabelMatchers>>}})'
{CONNECTIONS_RULE}
externalRules:
{QUEUE_RULE}
"""


@pytest.fixture(scope="module")
def flawed_adapter(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess
) -> Iterator[Adapter]:
    folder = tmp_path_factory.mktemp("flawed")
    with COMPLAINTS.adapter(folder, trust, prometheus, rules=FLAWED) as running:
        yield running


def test_one_bad_rule_removes_no_other_metric__prometheus_adapter_225(flawed_adapter: Adapter) -> None:
    """The rule is bad by its text, empty, refused by Prometheus, or without series (also kube-prometheus 160)."""
    with flawed_adapter.caller() as caller:
        assert {"pods/connections", "namespaces/connections"} <= caller.listed()
        assert len(caller.pods("connections", **WEB).values) == 3
        assert len(caller.external("queue_depth").items) == 1
        assert "no_such_function" in caller.pods("refused_by_prometheus", **WEB).message
    for line, code in ((4, "bad-regex"), (6, "missing-key"), (9, "missing-key")):
        flawed_adapter.wait_for(rf" ERROR .*/rules\.yaml:{line}: .*code={code}")


def test_a_failed_look_up_is_logged_with_its_rule_and_cause__prometheus_adapter_99_298(flawed_adapter: Adapter) -> None:
    said = flawed_adapter.wait_for(r"must contain at least one non-empty matcher")
    assert "rules[3]" in said
    assert eventually(lambda: flawed_adapter.metric("tidewatch_adapter_rules", state="failing") == 1)


def test_a_metric_that_does_not_exist_is_404_with_a_hint__prometheus_adapter_500_503(caller: Caller) -> None:
    for answer, hint in (
        (caller.pods("queue_depth", **WEB), "a metric of this name is served as external metric"),
        (caller.external("connections"), "a metric of this name is served for"),
        (caller.pods("found_missing", **WEB), "rules[1] would provide it from the series found_missing"),
        (caller.pods("connections_per_second", **WEB), "no rule provides a metric of this name"),
        (caller.pods("connections", labelSelector="app=nobody"), "no pods in namespace 'shop' match the selector"),
        (caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/idle-0/connections"), "Prometheus has no sample for it"),
    ):
        assert (answer.status, hint in answer.message) == (404, True), answer.message


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the flags that name rules and objects."""
    folder = tmp_path_factory.mktemp("explain")
    filtered = """
- seriesQuery: '{__name__=~"^connections$",namespace!="",pod!=""}'
  seriesFilters: [{isNot: "^conn"}]
  name: {as: filtered_away}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""
    (folder / "rules.yaml").write_text(RULES.replace("\nexternalRules:", f"{filtered}\nexternalRules:"))
    (folder / "objects").mkdir()
    for name, content in OBJECTS.items():
        (folder / "objects" / name).write_text(json.dumps(content))
    return f"--config={folder / 'rules.yaml'}", f"--objects={folder / 'objects'}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("pods/connexions",), "did you mean connections", id="no rule of this name"),
        pytest.param(("pods/filtered_away",), "its filter `isNot: ^conn` drops", id="a filter stands in the way"),
        pytest.param(("services/connections",), "for namespaces, pods", id="another kind"),
        pytest.param(("pods/not_yet",), "has no sample for pods/not_yet", id="no series"),
        pytest.param(("pods/ratio", "--object=pods/web-0"), "its value is NaN", id="no number"),
    ],
)
def test_explain_says_why_a_metric_is_missing__prometheus_adapter_173_154_118_237(
    files: tuple[str, str], prometheus: PrometheusProcess, arguments: tuple[str, ...], words: str
) -> None:
    ended = explain(files, prometheus, *arguments)
    assert ended.code == 1
    assert words in ended.out


def test_the_expected_label_and_the_labels_of_the_answer_are_named__prometheus_adapter_150(
    files: tuple[str, str], prometheus: PrometheusProcess, adapter: Adapter, caller: Caller
) -> None:
    words = "came without the label 'pod', which names its object, but with namespace"
    one = caller.get(f"{CUSTOM}/v1beta2/namespaces/shop/pods/web-0/without_the_label")
    for answer in (caller.pods("without_the_label", **WEB), one):
        assert (answer.status, words in answer.message) == (404, True), answer.message
    adapter.wait_for(rf"pods/without_the_label \(rules\[3\]\): a sample {words}")
    assert words in explain(files, prometheus, "pods/without_the_label").out


def test_pods_without_samples_are_distinguished_from_samples_without_pods__prometheus_adapter_535(
    files: tuple[str, str], prometheus: PrometheusProcess
) -> None:
    """The series of two clusters with the same rules may differ in how they name the pods."""
    found = explain(files, prometheus, "pods/found_requests").out
    assert "idle-0" in found
    assert "have no sample" in found


def explain(files: tuple[str, str], prometheus: PrometheusProcess, *arguments: str) -> Ended:
    return run("explain", *arguments, "-n", "shop", *files, f"--prometheus-url={prometheus.url}")


@pytest.fixture(scope="module")
def empty_adapter(
    tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess
) -> Iterator[Adapter]:
    """Yield an adapter whose rules find nothing."""
    rules = f"""
rules:
- seriesQuery: '{{__name__=~"^nothing_.+$",namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
externalRules:
- seriesQuery: '{{__name__=~"^nothing_.+$",namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
"""
    folder = tmp_path_factory.mktemp("empty")
    with COMPLAINTS.adapter(folder, trust, prometheus, rules=rules) as running:
        eventually(lambda: running.plain("/readyz").status == 200)
        yield running


def test_an_empty_list_of_metrics_is_a_list__prometheus_adapter_131(empty_adapter: Adapter) -> None:
    """Clients failed on `null` (CMA 146, client-go 1223, kubernetes 71190 and 111292, flux 1951, tilt 5922)."""
    with empty_adapter.caller() as caller:
        for path in (f"{CUSTOM}/v1beta1", f"{CUSTOM}/v1beta2", EXTERNAL):
            answer = caller.get(path)
            assert (answer.status, answer.document["resources"]) == (200, [])
        versions = [
            version for group in caller.get("/apis", [AGGREGATED]).document["items"] for version in group["versions"]
        ]
        assert {version["freshness"] for version in versions} == {"Current"}
        assert [type(version["resources"]) for version in versions] == [list] * 4


def test_an_empty_list_after_an_installation_has_its_reason__kube_prometheus_1565(
    empty_adapter: Adapter, tmp_path: Path, prometheus: PrometheusProcess
) -> None:
    """The answer gives the reason, and `check` gives it rule by rule (also helm/charts 22152)."""
    with empty_adapter.caller() as caller:
        answer = caller.pods("nothing_at_all", **WEB)
        assert "rules[0] would provide it from the series nothing_at_all, but found none" in answer.message
    (tmp_path / "rules.yaml").write_text(RULES.replace("^found_", "^nothing_"))
    ended = run("check", f"--config={tmp_path / 'rules.yaml'}", f"--prometheus-url={prometheus.url}")
    assert "warning[no-series]" in ended.out


def test_what_every_client_downloads_stays_short_however_many_metrics__cma_150(adapter: Adapter) -> None:
    """The download also causes no warnings (CMA 146).

    `tests/e2e/metrics_apis/test_large_discovery.py` repeats this with 5,000 metrics and a real kubectl.
    """
    with adapter.caller() as caller:
        answer = caller.get("/apis", [AGGREGATED])
        assert len(caller.listed()) >= 8
    assert answer.header("Content-Type") == AGGREGATED[1]
    assert b"connections" not in answer.body
    assert len(answer.body) < 1000


def test_a_known_external_metric_without_series_is_an_empty_list_not_404__k8s_stackdriver_167(caller: Caller) -> None:
    known, unknown = caller.external("queue_not_yet"), caller.external("queue_nobody_knows")
    assert (known.status, known.items) == (200, [])
    assert unknown.status == 404
