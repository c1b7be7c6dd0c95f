"""Queries go to the backend of their entry, and no backend affects another one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.sources.prometheus.backends.backend_telemetry import BackendTelemetry
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.configuration.needs import AskedQuery
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUps, LookUpThreads
from recommender.running.queries.backend_queries import BackendConnection, BackendQueries, queries_to
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EU, US, ASIA = (PrometheusSettings(f"http://{name}:9090") for name in ("eu", "us", "asia"))
BACKENDS = ("", "us", "asia")


@dataclass(slots=True)
class Made:
    """Records the backend's name for each client that is made."""

    names: list[str] = field(default_factory=list)

    def connect(self, backend: str, settings: PrometheusSettings) -> PrometheusClient:
        self.names.append(backend)
        return PrometheusClient(settings)


def connections(default: PrometheusSettings, us: PrometheusSettings) -> dict[str, BackendConnection]:
    return {"": BackendConnection("eu", default), "us": BackendConnection("us", us)}


def test_a_change_of_one_backend_leaves_the_connections_of_others() -> None:
    made = Made()
    queries = BackendQueries(made.connect, 1.0)
    before, after = connections(EU, US), connections(EU, ASIA)
    queries.use(before)
    kept, replaced = queries.of("", before[""].source).client(), queries.of("us", before["us"].source).client()
    queries.use(after)
    assert queries.of("", after[""].source).client() is kept
    assert queries.of("us", after["us"].source).client() is not replaced
    assert made.names == ["eu", "us", "us"]


def test_credentials_that_cannot_be_read_at_first_are_used_once_they_can(tmp_path: Path) -> None:
    token = tmp_path / "token"
    connection = BackendConnection("eu", replace(EU, token_file=token))
    with queries_to({"": connection}, 1.0) as queries:
        values = queries.of("", connection.source)
        missing = values.value("up")
        assert isinstance(missing, Unknown)
        assert f"({token}): No such file" in missing.reason
        token.write_text("secret")
        until(lambda: "cannot be resolved" in str(values.value("up")))
    assert values.client() is None, "not after it was closed"


def test_queries_are_not_sent_to_another_prometheus_that_took_over_a_name() -> None:
    queries = BackendQueries(Made().connect, 1.0)
    before, swapped = connections(EU, US), connections(US, EU)
    queries.use(before)
    queries.use(swapped)
    for backend in before:
        former = queries.of(backend, before[backend].source).value("up")
        assert isinstance(former, Unknown)
        assert "has just changed" in former.reason
        assert queries.of(backend, swapped[backend].source).client() is not None


def test_a_removed_backend_is_named_in_the_reason() -> None:
    queries = BackendQueries(Made().connect, 1.0)
    queries.use(connections(EU, US))
    queries.use({"": BackendConnection("eu", EU)})
    assert queries.of("us", BackendConnection("us", US).source).value("up") == Unknown(
        "Prometheus us: it is not in `prometheus` any more: add it there, or correct `backend`"
    )


def test_a_changed_password_does_not_change_the_source_of_the_data() -> None:
    old = replace(US, headers=(("Authorization", "one"),))
    assert (
        BackendConnection("us", old).source
        == BackendConnection("us", replace(old, headers=(("Authorization", "two"),))).source
    )


def value_of(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"t_prometheus_{name}", labels)


def test_queries_are_counted_for_each_backend_and_in_total() -> None:
    registry = CollectorRegistry()
    telemetry = BackendTelemetry(registry, "t")
    for backend, result in (("eu", "ok"), ("us", "ok"), ("us", "unauthenticated"), ("eu", "refused")):
        telemetry.of(backend).record_query(kind="instant", path="/", server="s", result=result, seconds=0.1)
    assert value_of(registry, "queries_total", kind="instant", result="ok") == 2
    assert value_of(registry, "backend_queries_total", backend="us", kind="instant", result="ok") == 1
    assert [value_of(registry, "backend_up", backend=each) for each in ("eu", "us")] == [1, 0]
    telemetry.keep({"eu": EU})
    assert value_of(registry, "backend_up", backend="us") is None
    assert value_of(registry, "backend_queries_total", backend="us", kind="instant", result="ok") is None
    assert value_of(registry, "backend_up", backend="eu") == 1


def test_a_single_prometheus_has_no_metrics_by_backend() -> None:
    registry = CollectorRegistry()
    BackendTelemetry(registry, "t").of("").record_query(kind="instant", path="/", server="s", result="ok", seconds=0.1)
    assert not [each.name for each in registry.collect() if "backend" in each.name]


def at_once(work: Callable[[], None]) -> None:
    work()


@given(
    st.lists(st.tuples(st.sampled_from(BACKENDS), st.sampled_from(("sum(a)", "sum(b)"))), unique=True),
    st.sets(st.sampled_from(BACKENDS)),
)
def test_every_value_comes_from_the_queried_backend(wanted: list[tuple[str, str]], failing: set[str]) -> None:
    def ask(query: AskedQuery) -> Observed[float] | Unknown:
        if query.backend in failing:
            raise ConnectionError(query.backend)
        return Observed(float(hash((query.backend, query.text))), 1.0)

    def unused(*_: object) -> Any:  # noqa: ANN401 - never called
        raise AssertionError

    threads = LookUpThreads(at_once, at_once)
    gatherer = Gatherer(InputSources(ClusterState, ask, unused, lambda _: {}), lambda _backend: threads, threads)
    inputs = gatherer.gather(LookUps(frozenset(AskedQuery(text, backend) for backend, text in wanted)), 5.0)
    for backend in BACKENDS:
        asked = {text for each, text in wanted if each == backend}
        found = inputs.of_backend(backend).queries
        assert set(found) == asked
        for text in asked:
            if backend in failing:
                assert isinstance(found[text], Unknown)
            else:
                assert found[text] == Observed(float(hash((backend, text))), 1.0)
