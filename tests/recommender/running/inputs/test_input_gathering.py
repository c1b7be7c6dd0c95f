"""Inputs are collected within one deadline, whatever their sources do."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.service.runtime.threads import DaemonThreads
from recommender.configuration.needs import AskedQuery
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.running.inputs import input_gathering
from recommender.running.inputs.fair_threads import FairThreads
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUps, LookUpThreads
from recommender.running.loads.load_needs import LoadNeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recommender.decisions.loads.load_inputs import LoadInputs

SOON = 1.0
"""Seconds within which even a busy machine answers what does not hang."""
WANTED = LookUps(queries=frozenset({AskedQuery("quick"), AskedQuery("slow")}))


def unused(*_: object) -> Any:  # noqa: ANN401 - never called
    raise AssertionError("nothing of this kind was requested")


@dataclass(slots=True)
class Queries:
    """Answers `quick` at once, and `slow` when the test releases it."""

    released: threading.Event = field(default_factory=threading.Event)
    queried: list[str] = field(default_factory=list)

    def __call__(self, query: AskedQuery) -> Observed[float] | Unknown:
        self.queried.append(query.text)
        if query.text == "slow":
            self.released.wait(10)
        return Observed(float(len(query.text)), 1.0)


@pytest.fixture
def queries() -> Iterator[Queries]:
    found = Queries()
    yield found
    found.released.set()


def in_threads(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def gatherer(query: Callable[[AskedQuery], Observed[float] | Unknown]) -> Gatherer:
    threads = LookUpThreads(in_threads, in_threads)
    return Gatherer(InputSources(ClusterState, query, unused, lambda _: {}), threads, threads)


def test_a_late_answer_is_unknown_and_the_others_are_available(queries: Queries) -> None:
    inputs = gatherer(queries).gather(WANTED, SOON)

    assert inputs.queries["quick"] == Observed(5.0, 1.0)
    assert inputs.queries["slow"] == Unknown("the query has not been answered yet")


def test_a_late_answer_is_unknown_for_the_reason_of_the_failure_before_it(queries: Queries) -> None:
    failed, [slow] = Unknown("Prometheus did not answer within 5 s"), [AskedQuery("slow")]
    answers: list[Callable[[AskedQuery], Observed[float] | Unknown]]
    answers = [lambda _: failed, queries, lambda _: Observed(4.0, 1.0), queries]

    def query(asked: AskedQuery) -> Observed[float] | Unknown:
        return answers.pop(0)(asked)

    under_test, wanted = gatherer(query), LookUps(queries=frozenset({slow}))
    assert [under_test.gather(wanted, SOON).queries["slow"] for _ in range(3)] == [failed] * 3
    queries.released.set()
    assert [under_test.gather(wanted, SOON).queries["slow"] for _ in range(2)] == [Observed(4.0, 1.0)] * 2
    queries.released.clear()
    assert under_test.gather(wanted, SOON).queries["slow"] == Unknown("the query has not been answered yet")


def test_a_lookup_is_not_sent_again_while_it_is_in_progress(queries: Queries) -> None:
    under_test = gatherer(queries)
    for _ in range(3):
        under_test.gather(WANTED, SOON)

    assert queries.queried.count("slow") == 1
    assert queries.queried.count("quick") == 3


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("payer", ["", "shop"], ids=["of the file", "of an object"])
def test_a_lookup_without_a_thread_is_sent_once_in_the_next_poll(
    queries: Queries, monkeypatch: pytest.MonkeyPatch, payer: str
) -> None:
    threads = DaemonThreads("query", 2)
    fair = FairThreads("query of objects", 2, 1)
    starts = LookUpThreads(threads.submit, threads.submit, fair.submit)
    under_test = Gatherer(InputSources(ClusterState, queries, unused, lambda _: {}), starts, starts)
    quick = AskedQuery("quick")
    wanted = LookUps(queries=frozenset({quick}), payers={quick: payer})
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        for _ in range(2):
            found = under_test.gather(wanted, SOON).queries["quick"]
            assert found == Unknown("the look-up has not been sent: can't start new thread")
    assert under_test.gather(wanted, SOON).queries["quick"] == Observed(5.0, 1.0)
    assert queries.queried == ["quick"]


def test_a_late_answer_counts_in_the_next_poll(queries: Queries) -> None:
    under_test = gatherer(queries)
    under_test.gather(WANTED, 0.05)
    queries.released.set()

    assert under_test.gather(WANTED, 5.0).queries["slow"] == Observed(4.0, 1.0)


def test_a_load_that_hangs_is_unknown_and_delays_nothing_else(queries: Queries) -> None:
    need = LoadNeed("shop", PredictiveSettings(load="load"), 10.0)

    def load(_need: LoadNeed) -> Observed[LoadInputs] | Unknown:
        queries.released.wait(10)
        return Observed({}, 1.0)

    threads = LookUpThreads(in_threads, in_threads)
    sources = InputSources(ClusterState, queries, unused, lambda _: {}, load)
    under_test = Gatherer(sources, threads, threads, load_threads=threads)
    wanted = LookUps(queries=frozenset({AskedQuery("quick")}), loads=frozenset({need}))
    late = under_test.gather(wanted, SOON)
    queries.released.set()

    assert late.loads["shop"] == Unknown("the load has not been answered yet")
    assert late.queries["quick"] == Observed(5.0, 1.0)
    assert under_test.gather(wanted, 5.0).loads["shop"] == {}


def test_an_internal_error_in_one_lookup_does_not_affect_others() -> None:
    def query(asked: AskedQuery) -> Observed[float] | Unknown:
        if asked.text == "slow":
            raise ZeroDivisionError("one by nothing")
        return Observed(1.0, 1.0)

    inputs = gatherer(query).gather(WANTED, 5.0)
    assert inputs.queries["slow"] == Unknown(
        "the look-up failed with an internal error (ZeroDivisionError: one by nothing)"
    )
    assert inputs.queries["quick"] == Observed(1.0, 1.0)


def test_slow_lookups_leave_the_usual_threads_to_the_others() -> None:
    """Each pool is a list of the work that it was given, which nothing else would run."""
    now, usual, slow = [0.0], list[str](), list[str]()
    asking = [""]

    def query(asked: AskedQuery) -> Observed[float] | Unknown:
        asking[0] = asked.text
        now[0] += 5.0 if asked.text == "slow" else 0.1
        return Observed(1.0, 1.0)

    def noted(pool: list[str]) -> Callable[[Callable[[], None]], None]:
        def submit(work: Callable[[], None]) -> None:
            work()
            pool.append(asking[0])

        return submit

    threads = LookUpThreads(noted(usual), noted(slow))
    under_test = Gatherer(
        InputSources(ClusterState, query, unused, lambda _: {}), threads, LookUpThreads(unused, unused), lambda: now[0]
    )
    under_test.gather(WANTED, 8.0)
    usual.clear()
    under_test.gather(WANTED, 8.0)
    assert (usual, slow) == (["quick"], ["slow"])


def test_queries_that_hang_do_not_delay_config_maps(queries: Queries) -> None:
    sources = InputSources(ClusterState, queries, lambda *_: Observed(None, 1.0), lambda _: {})
    one_query, one_config_map = DaemonThreads("query", 1).submit, DaemonThreads("ConfigMap", 1).submit
    under_test = Gatherer(sources, LookUpThreads(one_query, one_query), LookUpThreads(one_config_map, one_config_map))
    name = ("kube-system", "coredns")
    under_test.gather(LookUps(queries=frozenset({AskedQuery("slow")})), 0.0)
    found = under_test.gather(LookUps(queries=frozenset({AskedQuery("slow")}), config_maps=frozenset({name})), SOON)
    assert found.config_maps[name] == Observed(None, 1.0)


def test_later_polls_do_not_wait_for_a_backend_that_hangs(queries: Queries) -> None:
    slow, quick = AskedQuery("slow", "us", "1"), AskedQuery("quick")
    threads = LookUpThreads(in_threads, in_threads)
    under_test = Gatherer(InputSources(ClusterState, queries, unused, lambda _: {}), lambda _backend: threads, threads)
    found = under_test.gather(LookUps(frozenset({slow, quick})), SOON)
    assert found.queries == {"quick": Observed(5.0, 1.0)}
    assert found.queries_elsewhere == {"us": {"slow": Unknown("the query has not been answered yet")}}
    queries.released.set()
    # An answer that was late counts in the next poll, which asks anew.
    assert under_test.gather(LookUps(frozenset({slow, quick})), 10.0).queries_elsewhere["us"]["slow"] == Observed(
        4.0, 1.0
    )


def test_a_late_answer_of_a_former_prometheus_does_not_count_for_its_successor_of_the_same_name(
    queries: Queries,
) -> None:
    threads = LookUpThreads(in_threads, in_threads)
    under_test = Gatherer(InputSources(ClusterState, queries, unused, lambda _: {}), threads, threads)
    under_test.gather(LookUps(frozenset({AskedQuery("slow", "us", "former")})), 0.05)
    queries.released.set()
    under_test.gather(LookUps(frozenset({AskedQuery("slow", "us", "new")})), 10.0)
    assert queries.queried == ["slow", "slow"]


def test_each_backend_has_its_own_threads(queries: Queries) -> None:
    """The threads of one backend are all busy, so that only the threads of the other one can answer."""
    busy, free = DaemonThreads("busy", 1).submit, DaemonThreads("free", 1).submit

    def threads(backend: str) -> LookUpThreads:
        return LookUpThreads(busy, busy) if backend == "us" else LookUpThreads(free, free)

    under_test = Gatherer(InputSources(ClusterState, queries, unused, lambda _: {}), threads, LookUpThreads(free, free))
    wanted = LookUps(frozenset({AskedQuery("slow", "us"), AskedQuery("also", "us"), AskedQuery("quick")}))
    assert under_test.gather(wanted, 1.0).queries == {"quick": Observed(5.0, 1.0)}


def test_a_backend_that_was_slow_between_two_polls_uses_the_threads_for_slow_lookups() -> None:
    """Polls do not wait for these threads, so that no poll is late because of them."""
    now, waiting, usual, slow = [0.0], list["Callable[[], None]"](), list[str](), list[str]()

    def query(asked: AskedQuery) -> Observed[float] | Unknown:
        now[0] += 5.0 if asked.backend == "us" else 0.0
        return Observed(1.0, 1.0)

    def later(pool: list[str]) -> Callable[[Callable[[], None]], None]:
        def submit(work: Callable[[], None]) -> None:
            pool.append("lookup")
            waiting.append(work)

        return submit

    of_us = LookUpThreads(later(usual), later(slow))
    at_once = LookUpThreads(lambda work: work(), lambda work: work())
    sources = InputSources(ClusterState, query, unused, lambda _: {})
    under_test = Gatherer(sources, lambda backend: of_us if backend else at_once, at_once, lambda: now[0])
    wanted = LookUps(frozenset({AskedQuery("far", "us"), AskedQuery("near")}))
    under_test.gather(wanted, 0.05)
    waiting.pop()()
    under_test.gather(wanted, 0.05)
    assert (usual, slow) == (["lookup"], ["lookup"])


def test_queries_of_objects_run_in_the_threads_of_the_namespace_that_pays_and_delay_the_file_little(
    queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_gathering, "APART_SECONDS", 0.05)
    paid: list[str] = []

    def submit_for(namespace: str, work: Callable[[], None]) -> None:
        paid.append(namespace)
        in_threads(work)

    threads = LookUpThreads(lambda work: work(), unused, submit_for)
    under_test = Gatherer(InputSources(ClusterState, queries, unused, lambda _: {}), threads, threads)
    found = under_test.gather(replace(WANTED, payers={AskedQuery("slow"): "shop"}), 60.0).queries
    assert found == {"quick": Observed(5.0, 1.0), "slow": Unknown("the query has not been answered yet")}
    assert paid == ["shop"]


@pytest.mark.parametrize("has_its_own", [True, False])
def test_loads_take_their_own_threads_if_there_are_any(*, has_its_own: bool) -> None:
    taken: list[str] = []

    def noted(pool: str) -> LookUpThreads:
        def submit(work: Callable[[], None]) -> None:
            taken.append(pool)
            work()

        return LookUpThreads(submit, submit)

    sources = InputSources(ClusterState, unused, unused, lambda _: {}, lambda _: Observed({}, 1.0))
    under_test = Gatherer(
        sources, noted("queries"), noted("ConfigMaps"), load_threads=noted("loads") if has_its_own else None
    )
    need = LoadNeed("shop", PredictiveSettings(load="load"), 10.0)
    assert under_test.gather(LookUps(loads=frozenset({need})), SOON).loads == {"shop": {}}
    assert taken == ["loads" if has_its_own else "queries"]


def test_an_answer_that_was_late_does_not_count_again_after_a_newer_one() -> None:
    waiting: list[Callable[[], None]] = []
    is_quick, asked = [False], [0.0]

    def query(_asked: AskedQuery) -> Observed[float] | Unknown:
        asked[0] += 1.0
        return Observed(asked[0], 1.0)

    def submit(work: Callable[[], None]) -> None:
        if is_quick[0]:
            work()
        else:
            waiting.append(work)

    threads = LookUpThreads(submit, submit)
    under_test = Gatherer(InputSources(ClusterState, query, unused, lambda _: {}), lambda _: threads, threads)
    wanted = LookUps(frozenset({AskedQuery("load", "us"), AskedQuery("load", "eu")}))

    def polled() -> set[object]:
        found = under_test.gather(wanted, 0.0).queries_elsewhere
        return {each["load"].value if isinstance(each["load"], Observed) else None for each in found.values()}

    assert polled() == {None}
    for work in waiting:
        work()
    is_quick[0] = True
    assert polled() == {3.0, 4.0}
    is_quick[0] = False
    assert polled() == {None}


@pytest.mark.parametrize("backend", ["", "us"], ids=["of one backend", "of several backends"])
@pytest.mark.parametrize(
    ("steps", "values"),
    [
        ("poll answer poll", [None, 1.0]),
        ("poll answer forget poll answer poll", [None, None, 2.0]),
        ("poll forget answer poll answer poll", [None, None, 2.0]),
        ("poll forget poll answer poll answer poll", [None, None, None, 2.0]),
        ("poll answer poll forget poll", [None, 1.0, None]),
    ],
    ids=[
        "no change",
        "an answer before the change",
        "an answer after the change",
        "a look-up that is still under way, and that is not sent a second time",
        "an answer that has been used",
    ],
)
def test_no_answer_from_before_a_change_of_the_leader_counts_after_it(
    steps: str, values: list[float | None], backend: str
) -> None:
    asked, wanted = [0.0], AskedQuery("load", backend)
    waiting: list[Callable[[], None]] = []

    def query(_asked: AskedQuery) -> Observed[float] | Unknown:
        asked[0] += 1.0
        return Observed(asked[0], 1.0)

    def submit(work: Callable[[], None]) -> None:
        waiting.append(work)

    of_query, unanswered = LookUpThreads(submit, submit), LookUpThreads(lambda _: None, lambda _: None)
    under_test = Gatherer(
        InputSources(ClusterState, query, unused, lambda _: {}),
        lambda asked_backend: of_query if asked_backend == backend else unanswered,
        unanswered,
    )
    look_ups = LookUps(frozenset({wanted, AskedQuery("load", "eu")} if backend else {wanted}))
    found: list[float | None] = []
    for step in steps.split():
        if step == "poll":
            inputs = under_test.gather(look_ups, 0.0)
            answer = (inputs.queries_elsewhere[backend] if backend else inputs.queries)["load"]
            found.append(answer.value if isinstance(answer, Observed) else None)
        elif step == "forget":
            under_test.forget()
        else:
            [work] = waiting
            waiting.clear()
            work()
    assert found == values
