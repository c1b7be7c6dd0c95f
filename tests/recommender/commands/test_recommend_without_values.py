"""`recommend` if Prometheus or a file lacks what an entry needs: status, message and exit status."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.decisions.calculation import InputMissingError
from recommender.decisions.inputs import Inputs
from recommender.decisions.loop import decide
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import RecommendationPolicy
from recommender.decisions.record import Status
from recommender.running.queries.query_values import QueryValues
from tests.recommender.commands.test_recommend import Harness, run
from tests.recommender.configuration.files import entry, whole
from tests.support import forked
from tests.support.cluster_objects import node_object
from tests.support.object_apiserver import ObjectApiServer
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recommender.decisions.calculation import Calculation
    from tests.support.prometheus import ScrapedPrometheus

DRIVER = "proportional: {drivers: {query: {expr: 'topk(x)', perReplica: 2}}}"
LOAD = "predictive: {load: 'topk(x)', loadPerReplica: 1, horizon: 1m}"
FOR_EACH = (
    "predictive: {load: 'topk(x)', loadPerReplica: 1, horizon: 1m, forEach: {namespace: namespace, name: deployment}}"
)
REFUSAL = json.dumps(
    {
        "status": "error",
        "errorType": "bad_data",
        "error": "parse error: expected 2 argument(s) in call to 'topk', got 1",
    }
)
LIMIT = json.dumps({"status": "error", "errorType": "execution", "error": "too many samples"})


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def prometheus(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a Prometheus that fails in the way that the parameter names."""
    answers = {
        "400": ("400 Bad Request", REFUSAL),
        "422": ("422 Unprocessable Entity", LIMIT),
        "401": ("401 Unauthorized", "no"),
        "403": ("403 Forbidden", "no"),
        "503": ("503 Service Unavailable", "no"),
    }
    with ExitStack() as stack:
        if request.param == "down":
            yield "http://127.0.0.1:9"
        else:
            status, body = answers[request.param]
            yield stack.enter_context(raw_server(answering(body.encode(), status))).url


def decided_once(
    harness: Harness, url: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    configuration = whole(entry("a", kind=kind), top=f"prometheus: {{url: '{url}', timeout: 1s}}\n")
    code, out, _ = run([*harness.write(configuration, [node_object("n", "1")]), "-o", "json"], capsys)
    [item] = json.loads(out)["items"]
    assert item["replicas"] is None
    return code, item


@pytest.mark.parametrize("prometheus", ["400", "422"], indirect=True)
@pytest.mark.parametrize("kind", [DRIVER, LOAD, FOR_EACH])
def test_a_query_that_prometheus_refuses_is_an_error(
    harness: Harness, prometheus: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, item = decided_once(harness, prometheus, kind, capsys)
    assert (code, item["status"]) == (1, "error")
    assert "Prometheus refused it" in item["message"]


@pytest.mark.parametrize("prometheus", ["down", "401", "403", "503"], indirect=True)
@pytest.mark.parametrize("kind", [DRIVER, LOAD])
def test_a_prometheus_that_does_not_answer_leaves_no_value(
    harness: Harness, prometheus: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, item = decided_once(harness, prometheus, kind, capsys)
    assert (code, item["status"]) == (1, "stale")
    assert "Prometheus has no value" in item["message"]


def test_a_query_is_refused_by_a_real_prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> None:
    values = QueryValues(PrometheusClient(PrometheusSettings(start_prometheus().url)), UNPACED, 5.0)
    try:
        found = {query: values.value(query) for query in ("sum(x", "topk(x)", "vector(1)", "x")}
    finally:
        values.close()
    refused = {query for query, each in found.items() if isinstance(each, Unknown) and each.is_refused}
    assert refused == {"sum(x", "topk(x)"}


@pytest.mark.parametrize(("age", "status"), [(30.0, Status.HELD), (90.0, Status.ERROR)])
def test_a_known_value_is_held_after_a_refused_query_as_long_as_after_no_answer(age: float, status: Status) -> None:
    def calculate(_inputs: Inputs, _memory: Memory, _now: float) -> Calculation:
        raise InputMissingError("Prometheus refused it", is_refused=True)

    now = 1_000_000.0
    memory = Memory(LastValue(7, now - age, now - age))
    record = decide(RecommendationPolicy("a", "proportional"), calculate, Inputs(), memory, now).record
    assert (record.status, record.replicas) == (status, 7 if status is Status.HELD else None)


def test_one_entry_without_a_value_fails_the_command(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    linear = "proportional: {linear: {nodesPerReplica: 1}}"
    top = "prometheus: {url: 'http://127.0.0.1:9', timeout: 1s}\n"
    arguments = harness.write(whole(entry("a", kind=linear), entry("b", kind=LOAD), top=top), [node_object("n", "1")])
    assert run(arguments, capsys)[0] == 1
    assert run([*arguments, "--recommendation=a"], capsys)[0] == 0


@pytest.mark.parametrize(("flags", "levels"), [([], set()), (["--v=0"], {"INFO"}), (["--log-level=info"], {"INFO"})])
def test_watches_log_nothing_unless_a_log_level_is_set(
    harness: Harness, tmp_path: Path, flags: list[str], levels: set[str]
) -> None:
    config = harness.write(whole(entry("a")), [])[1]
    with ObjectApiServer() as server:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        # A process of its own: watches of a run in this one go on, and log that their server is gone.
        ended = forked.run(
            "recommend",
            config,
            f"--kubeconfig={kubeconfig}",
            *flags,
            environment={"no_proxy": "127.0.0.1"},
            program=forked.RECOMMENDER,
        )
    assert {line.split()[1] for line in ended.error.splitlines()} == levels
