"""Loads from a real Prometheus: each sample is requested once."""

from __future__ import annotations

import math
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.sources.prometheus.backends.data_sources import source_of
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.child_processes.child_errors import ChildDeadlineError
from recommender.configuration.reading import read_configuration
from recommender.decisions.loads.load_inputs import PodConnections
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.predictive_settings import Connections, ModelName
from recommender.running.loads.single_decision_loads import load_inputs_once
from recommender.running.queries.backend_queries import BackendQueries, connections_of
from tests.recommender.running.loads.load_harness import FOR_EACH, Clocks, LoadHarness, need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recommender.child_processes.parent import ChildLimits
    from recommender.configuration.recommender_configuration import Configuration
    from tests.support.prometheus import ScrapedPrometheus

HOUR = 3600.0
SPAN_SECONDS = 3 * HOUR
EACH = "sum by (namespace, deployment) (connections)"
WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
CHAT = TargetReference("apps/v1", "Deployment", "shop", "chat")


@pytest.fixture(scope="module")
def now() -> float:
    return time.time()


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus], now: float) -> ScrapedPrometheus:
    lines = ["# TYPE connections gauge"]
    for labels, height in (('deployment="web"', 100.0), ('deployment="chat"', 900.0), ('pod="lost"', 5.0)):
        for ago in range(int(SPAN_SECONDS + HOUR), -60, -60):
            value = height + 50 * math.sin(ago / 600)
            lines.append(f'connections{{namespace="shop",{labels}}} {value} {now - ago}')
    lines.append("# TYPE open gauge")
    recent = range(600, -1800, -15)
    lines += [f'open{{pod="a"}} 4 {now - ago}' for ago in recent]
    lines += ["# TYPE open_before gauge", f'open_before{{pod="a"}} 4 {now - 600}', "# TYPE open_of_some gauge"]
    of_chat, of_web = ('namespace="shop",deployment="chat",pod="a"', 'namespace="shop",deployment="web",pod="a"')
    lines += [f"open_of_some{{{of_chat}}} 4 {now - ago}" for ago in recent]
    lines += [f"open_of_some{{{of_web}}} 4 {now - 600}"]
    return start_prometheus(history="\n".join([*lines, "# EOF", ""]))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., LoadHarness]]:
    """Yield a function that makes harnesses, which share a state folder and end with the test."""
    harnesses: list[LoadHarness] = []

    def make(url: str, clocks: Clocks | None = None) -> LoadHarness:
        harnesses.append(LoadHarness(url, tmp_path, clocks))
        return harnesses[-1]

    yield make
    for harness in harnesses:
        harness.queries.close()


def backends_of(configuration: Configuration) -> BackendQueries:
    found = BackendQueries(lambda _backend, settings: PrometheusClient(settings), 5.0)
    found.use(connections_of(configuration))
    return found


def begun(harness: LoadHarness, query: str = EACH, **settings: object) -> None:
    """Let the harness see the load for the first time, and download its history."""
    wanted = need(query, **settings)
    assert isinstance(harness.source.load(wanted), Observed)
    harness.download()


def test_forecasts_at_their_bound_are_counted_in_each_poll(
    prometheus: ScrapedPrometheus, made: Callable[..., LoadHarness], now: float
) -> None:
    harness = made(prometheus.url, Clocks(now))
    rising = f"clamp_min(vector(time() - {now - 600}), 0)"
    wanted = need(rising, history_seconds=SPAN_SECONDS, model=ModelName.LINEAR, max_over_history=1.0)
    assert isinstance(harness.source.load(wanted), Observed)
    harness.download()
    counted = {"recommendation": "shop", "model": "linear"}
    assert harness.registry.get_sample_value("tidewatch_forecast_bounded_total", counted) is None
    for polls in (1, 2):
        assert isinstance(harness.source.load(wanted), Observed)
        assert harness.registry.get_sample_value("tidewatch_forecast_bounded_total", counted) == polls


def test_the_loads_of_another_cluster_are_neither_seen_nor_downloaded(
    prometheus: ScrapedPrometheus, made: Callable[..., LoadHarness], now: float
) -> None:
    harness = made(prometheus.url, Clocks(now))
    narrowed = PrometheusSettings(prometheus.url, matchers=Matchers.read('deployment="web"'))
    harness.ask(narrowed)
    begun(harness, for_each=FOR_EACH, history_seconds=SPAN_SECONDS)

    (history,) = harness.keeper.all()
    assert set(history.targets()) == {WEB}
    assert source_of(narrowed) != source_of(PrometheusSettings(prometheus.url))


def test_history_is_downloaded_once_and_matches_prometheus(
    prometheus: ScrapedPrometheus, made: Callable[..., LoadHarness], now: float
) -> None:
    harness = made(prometheus.url, Clocks(now))
    begun(harness, for_each=FOR_EACH, history_seconds=SPAN_SECONDS)
    downloads = len(harness.ranges)
    harness.clocks.monotonic += 3000.0
    harness.keeper.work()

    (history,) = harness.keeper.all()
    assert len(harness.ranges) == downloads == 1
    past = history.history([WEB, CHAT], now - 60)
    for ago in (120, 1800, 7200):
        at = (now - ago) // history.step_seconds * history.step_seconds
        place = round((at - past.start_seconds) / past.step_seconds)
        expected = {each["metric"]["deployment"]: each["value"][1] for each in prometheus.query(EACH, at)[:2]}
        assert past.values[0, place] == pytest.approx(float(expected["web"]))
        assert past.values[1, place] == pytest.approx(float(expected["chat"]))


def test_a_restart_downloads_only_what_was_missed(
    prometheus: ScrapedPrometheus, made: Callable[..., LoadHarness], now: float
) -> None:
    begun(made(prometheus.url, Clocks(now - HOUR)), for_each=FOR_EACH, history_seconds=SPAN_SECONDS)
    restarted = made(prometheus.url, Clocks(now))
    begun(restarted, for_each=FOR_EACH, history_seconds=SPAN_SECONDS)

    ((start, end),) = restarted.ranges
    assert now - HOUR - 30 <= start <= now - HOUR + 30
    assert now - 30 <= end <= now
    (history,) = restarted.keeper.all()
    assert history.known_seconds([WEB], now)[0] == pytest.approx(SPAN_SECONDS, abs=60)


def test_series_become_targets_and_those_without_a_name_are_left_out(
    prometheus: ScrapedPrometheus, made: Callable[..., LoadHarness], now: float
) -> None:
    harness = made(prometheus.url, Clocks(now))
    found = harness.source.load(need(EACH, for_each=FOR_EACH))

    assert isinstance(found, Observed)
    assert set(found.value) == {WEB, CHAT}
    web = found.value[WEB]
    assert isinstance(web, Observed)
    assert web.value.prediction.load.predicted == pytest.approx(1.1 * web.value.prediction.load.now)
    assert harness.metric("series_left_out") == 1


@pytest.mark.parametrize(("metric", "is_known"), [("open", True), ("open_before", False)])
def test_connections_of_pods_are_used_as_long_as_they_are_recent(
    prometheus: ScrapedPrometheus,
    made: Callable[..., LoadHarness],
    caplog: pytest.LogCaptureFixture,
    metric: str,
    *,
    is_known: bool,
) -> None:
    connections = Connections(limit=10, metric=f"last_over_time({metric}[1h])")
    found = made(prometheus.url).source.load(need("vector(3)", connections=connections))
    assert isinstance(found, Observed)
    only = found.value[None]
    assert isinstance(only, Observed)
    if is_known:
        assert only.value.pods == (PodConnections(4.0, is_ready=True, name="a"),)
    else:
        assert only.value.pods is None
        assert "the newest sample of last_over_time(open_before[1h]) is too old" in caplog.text


def test_a_pod_with_a_recent_sample_does_not_hide_one_without(
    prometheus: ScrapedPrometheus, made: Callable[..., LoadHarness]
) -> None:
    connections = Connections(limit=10, metric="last_over_time(open_of_some[1h])")
    found = made(prometheus.url).source.load(need(EACH, for_each=FOR_EACH, connections=connections))
    assert isinstance(found, Observed)
    pods = {target: each.value.pods for target, each in found.value.items() if isinstance(each, Observed)}
    assert pods[CHAT] == (PodConnections(4.0, is_ready=True, name="a"),)
    assert pods[WEB] == (PodConnections(None, is_ready=True, name="a"),), "it counts as full"


def test_a_query_with_several_values_is_unknown(
    prometheus: ScrapedPrometheus, made: Callable[..., LoadHarness]
) -> None:
    found = made(prometheus.url).source.load(need(EACH))

    assert isinstance(found, Unknown)
    assert "has 3 values: write an expression that has exactly one" in found.reason


def test_the_load_is_unknown_without_prometheus(made: Callable[..., LoadHarness]) -> None:
    harness = made("http://127.0.0.1:9")
    found = harness.source.load(need("load"))
    harness.download()

    assert isinstance(found, Unknown)
    assert harness.keeper.all() == ()


@pytest.mark.parametrize(
    ("is_late", "children"),
    [(False, ["choice"]), (True, ["choice", "linear", "choice"])],
    ids=["in time", "the child of all is late"],
)
def test_a_single_decision_tries_light_models_in_one_child_process_if_possible(
    prometheus: ScrapedPrometheus, tmp_path: Path, *, is_late: bool, children: list[str]
) -> None:
    load = "sum(connections)"
    predictive = f"{{model: linear, history: 4h, loadPerReplica: 10, horizon: 3m, load: {load}}}"
    configuration = read_configuration(
        "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\n"
        f"state: {tmp_path}\nprometheus: {{url: {prometheus.url}}}\n"
        f"recommendations:\n- {{name: shop, predictive: {predictive}}}\n",
        "recommender.yaml",
    )
    assert not configuration.refused
    ran: list[str] = []

    def run_child(name: str, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ChildLimits) -> Any:  # noqa: ANN401, ARG001 - as `Children.run`
        ran.append(name)
        if is_late and len(ran) == 1:
            raise ChildDeadlineError(f"{name}: killed after 60 s")
        return function(*arguments)

    with closing(backends_of(configuration)) as queries:
        found = load_inputs_once(configuration, queries, run_child, lambda _line: None)["shop"]
    assert ran == children
    assert not isinstance(found, Unknown)
    only = found[None]
    assert isinstance(only, Observed)
    assert only.value.prediction.model == "linear"
