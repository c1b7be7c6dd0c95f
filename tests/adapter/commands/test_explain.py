"""`tidewatch-adapter explain` as its users run it: for each reason why a value is missing, what `explain` says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapter.commands.harness import OBJECTS, RULES
from tests.support.fake_apiserver import FakeApiServer
from tests.support.forked import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeAlias

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.forked import Ended

    Explain: TypeAlias = Callable[..., Ended]

FILTERED = """
- seriesQuery: '{__name__=~"^open_.*",namespace!="",pod!=""}'
  seriesFilters: [{isNot: "^open_"}]
  name: {as: hidden_$0}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: 'open_connections{namespace!="",pod!=""}'
  name: {as: without_label}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("explain")
    (made / "rules.yaml").write_text(RULES.replace("\nexternalRules:", f"{FILTERED}\nexternalRules:"))
    (made / "objects").mkdir()
    for name, content in OBJECTS.items():
        (made / "objects" / name).write_text(json.dumps(content))
    return made


@pytest.fixture
def explain(folder: Path, prometheus: PrometheusProcess) -> Explain:
    def explained(*arguments: str, prometheus_url: str = prometheus.url) -> Ended:
        return run(
            "explain",
            *arguments,
            f"--config={folder / 'rules.yaml'}",
            f"--objects={folder / 'objects'}",
            f"--prometheus-url={prometheus_url}",
            "--metrics-max-age=10m",
        )

    return explained


def document(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_a_value_is_shown_with_its_rule_query_and_age(explain: Explain) -> None:
    ended = explain("pods/open_connections", "-n", "shop", "--object", "pods/web-1", "-o", "json")
    found = document(ended)

    assert (ended.code, ended.error) == (0, "")
    assert (found["apiVersion"], found["kind"]) == ("tidewatch.io/v1alpha1", "Explanation")
    assert (found["metric"], found["namespace"], found["object"]) == ("pods/open_connections", "shop", "pods/web-1")
    assert (found["verdict"], found["rule"]) == ("value", "rules[0]")
    assert found["query"] == 'sum by (pod) (open_connections{namespace="shop",pod="web-1"})'
    (value,) = found["values"]
    assert value["object"] == "web-1"
    assert 1000 <= value["value"] < 2000
    assert 0 <= value["age_seconds"] <= 60
    assert value["timestamp"].endswith("Z")
    assert all(step.keys() == {"step", "outcome", "detail"} for step in found["steps"])


def test_objects_without_a_sample_are_named(explain: Explain) -> None:
    found = document(explain("pods/open_connections", "-n", "shop", "-o", "json"))

    assert found["verdict"] == "value"
    assert {value["object"] for value in found["values"]} == {"web-0", "web-1", "web-2", "db-0"}
    assert "idle-0 has no sample" in [step["detail"] for step in found["steps"]]
    assert "gone-0 has samples that were not requested" in [step["detail"] for step in found["steps"]]


@pytest.mark.parametrize(
    ("arguments", "verdict", "words"),
    [
        pytest.param(
            ("pods/open_conections", "-n", "shop"), "no-value", "did you mean open_connections", id="misspelt"
        ),
        pytest.param(
            ("pods/Never_seen", "-n", "shop"), "no-value", "did you mean never_seen", id="misspelt, without series"
        ),
        pytest.param(
            ("pods/hidden_open_connections", "-n", "shop"), "no-value", "its filter `isNot: ^open_` drops", id="filter"
        ),
        pytest.param(("services/open_connections", "-n", "shop"), "no-value", "for namespaces, pods", id="other kind"),
        pytest.param(
            ("pods/without_label", "-n", "shop"),
            "no-value",
            "came without the label 'pod'",
            id="the label is aggregated away",
        ),
        pytest.param(
            ("pods/never_seen", "-n", "shop"), "no-value", "has no sample for pods/never_seen", id="no series"
        ),
        pytest.param(("pods/odd", "-n", "shop", "--object=pod/web-0"), "no-value", "its value is NaN", id="NaN"),
        pytest.param(("pods/twice", "-n", "shop", "--object=pod/web-0"), "error", "several samples", id="ambiguous"),
        pytest.param(("odd_rows", "-n", "shop"), "error", "2 of 3 series have no finite value", id="external NaN"),
        pytest.param(("pods/open_connections",), "error", "no namespace is given", id="namespace forgotten"),
        pytest.param(("pods/refused", "-n", "shop"), "error", "many-to-many", id="refused by Prometheus"),
    ],
)
def test_each_reason_for_a_missing_value_is_explained(
    explain: Explain, arguments: tuple[str, ...], verdict: str, words: str
) -> None:
    ended = explain(*arguments, "-o", "json")
    found = document(ended)

    assert (ended.code, found["verdict"], found["values"]) == (1, verdict, [])
    assert words in json.dumps(found, ensure_ascii=False).replace('\\"', '"')


def test_external_rows_are_shown_as_series(explain: Explain) -> None:
    found = document(explain("queue_depth", "-n", "shop", "-l", "queue=orders", "-o", "json"))

    assert (found["verdict"], found["rule"]) == ("value", "externalRules[0]")
    assert len(found["values"]) == 2
    assert all('queue="orders"' in value["object"] for value in found["values"])


def test_the_text_output_starts_with_the_answer(explain: Explain) -> None:
    ended = explain("pods/without_label", "-n", "shop")

    first, *_ = ended.out.splitlines()
    assert first.startswith("pods/without_label in shop has no value: no object has a value: a sample came without the")
    assert first.endswith("keep that label in the result of the rule's metricsQuery")


def test_the_text_output_contains_a_long_cause_once(explain: Explain) -> None:
    shown = explain("pods/without_label", "-n", "shop")
    written = document(explain("pods/without_label", "-n", "shop", "-o", "json"))

    assert shown.out.count("keep that label in the result of the rule's metricsQuery") == 1
    assert "  no    values   see the first line\n" in shown.out
    assert written["steps"][-1]["detail"] == written["cause"]


def test_the_text_output_says_what_to_do(explain: Explain) -> None:
    first, second, *_ = explain("pods/refused", "-n", "shop").out.splitlines()

    assert first.startswith("pods/refused in shop gives an error: ")
    assert second.strip() == "what to do: change the rule's metricsQuery so that Prometheus can answer it"


def test_an_unreachable_prometheus_is_an_error_with_the_reason(explain: Explain) -> None:
    found = document(explain("pods/missing", "-n", "shop", "-o", "json", prometheus_url="http://127.0.0.1:9"))

    assert found["verdict"] == "error"
    assert "cannot be looked up" in json.dumps(found["steps"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pods/a", "--object=web-0"), "write KIND/NAME"),
        (("pods/a", "--object=services/web-0"), "give one kind"),
        (("pods/a", "--api=external"), "write a alone"),
        (("nothings/a",), "no resource 'nothings'"),
        (("a", "-l", "!!"), "--selector"),
        ((), "METRIC is missing"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(explain: Explain, arguments: tuple[str, ...], words: str) -> None:
    ended = explain(*arguments)

    assert (ended.code, ended.out) == (2, "")
    assert words in ended.error
    assert ended.error.count("\n") == 1


OF_SERVICES = """
rules:
- seriesQuery: 'open_connections{namespace!="",service!=""}'
  resources: {overrides: {namespace: {resource: namespace}, service: {resource: service}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("services/open_connections",), "1 services in shop"),
        (("open_connections",), "1 services in shop"),
        (
            ("services/open_connections", "--object=services/nosuch"),
            "has no value: there is no services/nosuch in shop",
        ),
    ],
)
def test_explain_waits_for_objects_of_any_kind_in_a_cluster(
    tmp_path: Path, prometheus: PrometheusProcess, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "rules.yaml").write_text(OF_SERVICES)
    with FakeApiServer() as cluster:
        cluster.put("services", "shop", "front", {})
        ended = run(
            "explain",
            *arguments,
            "-n",
            "shop",
            f"--config={tmp_path / 'rules.yaml'}",
            f"--kubeconfig={cluster.kubeconfig(tmp_path / 'kubeconfig')}",
            f"--prometheus-url={prometheus.url}",
        )

    assert words in ended.out, ended
