"""The exporters whose series count for a node, whatever other tenants export."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.exporters.claims import HOLD_SECONDS, SETTLING_SECONDS, ExporterClaim, Ownership, Past, Source
from adapter.nodes.exporters.judged_claims import judge_claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

REAL: Source = (("job", "node-exporter"), ("namespace", "monitoring"))
EVIL: Source = (("job", "evil/pod"), ("namespace", "evil"))
NODES = tuple(f"n{number}" for number in range(1, 11))
AT = 1_800_000_000.0


def claims(
    source: Source, nodes: Iterable[str] = NODES, *, own: bool = True, live: bool = True, pod: str = ""
) -> list[ExporterClaim]:
    """Return the claims of an exporter for each node; `own` says whether it has the address of the node."""
    name = dict(source).get("namespace", "")
    return [ExporterClaim(node, source, f"{node} {name} {pod}", own, AT if live else AT - 200, live) for node in nodes]


@dataclass
class JudgedExporters:
    """Exporters that are judged again and again."""

    past: Mapping[Source, Past] = field(default_factory=dict)
    now: float = AT
    ownership: Ownership = field(init=False)

    def __post_init__(self) -> None:
        self.ownership = Ownership(self.now, self.past)

    def answer(self, *parts: Iterable[ExporterClaim], after: float = 30.0) -> dict[str, str]:
        """Judge what is exported `after` seconds later; return the exporter by which each node is now measured."""
        self.now += after
        found = [replace(one, seen_at=self.now - (AT - one.seen_at)) for part in parts for one in part]
        judgement = judge_claims(self.ownership, found, self.now)
        self.ownership = judgement.ownership
        counted = [
            one for index, one in enumerate(found) if index not in judgement.refused and index not in judgement.earlier
        ]
        by_node = {one.node: one.exporter for one in counted}
        assert len(by_node) == len(counted), "several exporters count for one node"
        return by_node


def real(nodes: Iterable[str] = NODES) -> dict[str, str]:
    return {node: f"{node} monitoring " for node in nodes}


def nine_pods(source: Source = EVIL, node: str = "n1") -> list[ExporterClaim]:
    return [claim for number in range(9) for claim in claims(source, [node], own=False, pod=f"p{number}")]


@pytest.mark.parametrize(
    "other",
    [
        claims(EVIL, ["n1"], own=False),
        nine_pods(),
        nine_pods(REAL),
        claims(EVIL, own=False),
        claims(EVIL, ["n1", "n2"], own=True),
        claims((("job", "node-exporter"),), own=False),
        claims((("job", "node-exporter"), ("namespace", "evil")), own=False),
    ],
    ids=["one pod", "nine pods", "nine pods of the job", "all nodes", "instance", "same job", "same job elsewhere"],
)
@pytest.mark.parametrize("from_the_start", [True, False])
def test_nodes_keep_their_exporter_whatever_another_one_claims(
    other: list[ExporterClaim], *, from_the_start: bool
) -> None:
    exporters = JudgedExporters()
    if not from_the_start:
        exporters.answer(claims(REAL))
        exporters.answer(claims(REAL), after=SETTLING_SECONDS)
    for after in (30, 30, SETTLING_SECONDS, 7200):
        assert exporters.answer(other, claims(REAL), after=after) == real()


def test_another_exporter_that_was_first_loses_its_node_to_the_real_one_soon_after() -> None:
    exporters = JudgedExporters()
    exporters.answer(claims(EVIL, ["n1"], own=False))
    assert exporters.answer(claims(EVIL, ["n1"], own=False), claims(REAL)) == real()


def test_another_exporter_that_claimed_a_new_node_early_loses_it_to_the_real_one_at_once() -> None:
    exporters = JudgedExporters()
    exporters.answer(claims(REAL), claims(EVIL, ["new"], own=False))
    assert exporters.answer(claims(REAL, (*NODES, "new")), claims(EVIL, ["new"], own=False)) == real((*NODES, "new"))


def test_another_exporter_of_all_nodes_does_not_get_those_of_a_new_job() -> None:
    pools = [(("job", f"pool-{name}"),) for name in "abc"]
    parts = [claims(pools[0], NODES[:4]), claims(pools[1], NODES[4:7]), claims(pools[2], NODES[7:])]
    evil = claims(EVIL, own=False)
    exporters = JudgedExporters()
    exporters.answer(parts[0], parts[1], evil)
    exporters.answer(parts[0], parts[1], evil, after=SETTLING_SECONDS)
    found = exporters.answer(*parts, evil)
    assert not any("evil" in exporter for exporter in found.values())
    assert len(found) == len(NODES)


def test_another_exporter_replaces_a_silent_one_only_after_the_hold_time() -> None:
    exporters = JudgedExporters()
    evil = claims(EVIL, own=False)
    exporters.answer(claims(REAL), evil)
    for _ in range(int(HOLD_SECONDS / 300) - 1):
        assert exporters.answer(evil, after=300) == {}
    assert exporters.answer(claims(REAL), evil) == real()
    exporters.answer(after=HOLD_SECONDS)
    assert set(exporters.answer(evil)) == set(NODES)


@pytest.mark.parametrize("from_the_start", [True, False])
def test_the_last_samples_of_a_silent_exporter_still_count(*, from_the_start: bool) -> None:
    past = {} if from_the_start else {REAL: Past(AT - 86_400, AT - 200, len(NODES), is_missed=True)}
    exporters = JudgedExporters(past)
    if from_the_start:
        exporters.answer(claims(REAL))
    silent, evil = claims(REAL, ["n1"], live=False), claims(EVIL, ["n1"], own=False)
    assert exporters.answer(claims(REAL, NODES[1:]), silent, evil) == real()


def test_another_exporter_does_not_replace_the_silent_exporter_of_a_single_node() -> None:
    exporters = JudgedExporters()
    evil = claims(EVIL, ["n1"], own=False)
    for after in (30, 600, 600, 600):
        assert exporters.answer(claims(REAL, NODES[1:]) if after == 600 else claims(REAL), evil, after=after) == real(
            NODES[1:] if after == 600 else NODES
        )


@pytest.mark.parametrize(
    ("ago", "expected"), [(900.0, set()), (HOLD_SECONDS + 1, set(NODES))], ids=["a moment ago", "long ago"]
)
def test_after_a_restart_recently_known_exporters_keep_their_nodes(ago: float, expected: set[str]) -> None:
    past = {REAL: Past(AT - 86_400, AT - ago, 10, is_missed=True), EVIL: Past(AT - 3000, AT, 10, is_missed=False)}
    exporters = JudgedExporters(past)
    evil = claims(EVIL, own=False)
    assert set(exporters.answer(evil)) == expected
    assert exporters.answer(evil, claims(REAL)) == real()


def test_the_older_of_two_similar_jobs_counts() -> None:
    past = {REAL: Past(AT - 604_800, AT, 10, is_missed=False), EVIL: Past(AT - 86_400, AT, 12, is_missed=False)}
    for own in (True, False):
        assert JudgedExporters(past).answer(claims(EVIL, own=own), claims(REAL, own=own)) == real()


def test_the_job_with_older_samples_counts_if_two_are_nearly_alike() -> None:
    older = [replace(claim, since=AT - 900) for claim in claims(REAL, NODES[:9], own=False)]
    newer = [replace(claim, since=AT - 60) for claim in claims(EVIL, own=False)]
    assert JudgedExporters().answer(newer, older) == real(NODES[:9])


def test_the_job_that_measures_more_nodes_counts() -> None:
    assert JudgedExporters().answer(claims(EVIL, NODES[:4]), claims(REAL)) == real()


def test_jobs_that_each_measure_a_part_of_the_nodes_all_count() -> None:
    exporters = JudgedExporters()
    for after in (30, SETTLING_SECONDS, 7200):
        found = exporters.answer(
            claims(REAL, NODES[:7]), claims((("job", "windows"),), NODES[7:], own=False), after=after
        )
        assert set(found) == set(NODES)


def test_a_job_that_overlaps_slightly_keeps_the_nodes_that_only_it_measures() -> None:
    other: Source = (("job", "vms"), ("namespace", "vms"))
    found = JudgedExporters().answer(claims(REAL, NODES[:6]), claims(other, NODES[5:]))
    assert found == real(NODES[:6]) | {node: f"{node} vms " for node in NODES[6:]}


def test_an_exporter_restarted_with_another_address_counts_at_once() -> None:
    exporters = JudgedExporters()
    exporters.answer(claims(REAL, own=False, pod="a"))
    found = exporters.answer(claims(REAL, own=False, pod="a", live=False), claims(REAL, own=False, pod="b"))
    assert found == {node: f"{node} monitoring b" for node in NODES}


def test_another_pod_of_the_job_does_not_replace_an_exporter_with_the_address_of_its_node() -> None:
    exporters = JudgedExporters()
    exporters.answer(claims(REAL))
    assert exporters.answer(claims(REAL, ["n1"], own=False, pod="x")) == {}


def test_a_refused_pod_of_the_same_job_does_not_replace_a_missing_exporter() -> None:
    exporters = JudgedExporters()
    exporters.answer(claims(REAL, own=False, pod="a"))
    other = claims(REAL, ["n1"], own=False, pod="z")
    exporters.answer(claims(REAL, own=False, pod="a"), other)
    assert "n1" not in exporters.answer(claims(REAL, NODES[1:], own=False, pod="a"), other)


def test_a_renamed_job_gets_its_nodes_after_the_hold_time() -> None:
    exporters, renamed = JudgedExporters(), (("job", "new-name"), ("namespace", "monitoring"))
    exporters.answer(claims(REAL))
    assert exporters.answer(claims(renamed), after=SETTLING_SECONDS) == {}
    assert set(exporters.answer(claims(renamed), after=HOLD_SECONDS)) == set(NODES)


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 3), st.booleans()), max_size=12), max_size=6),
    st.integers(1, 600),
)
def test_a_live_job_keeps_its_nodes_whatever_other_tenants_export(
    rounds: list[list[tuple[str, int, bool]]], after: int
) -> None:
    exporters = JudgedExporters()
    exporters.answer(claims(REAL))
    exporters.answer(claims(REAL), after=SETTLING_SECONDS)
    for pods in rounds:
        others = [
            claim
            for number, (node, namespace, own) in enumerate(pods)
            for claim in claims((("job", "x"), ("namespace", f"t{namespace}")), [node], own=own, pod=str(number))
        ]
        assert exporters.answer(others, claims(REAL), after=after) == real()


def test_owners_of_nodes_that_are_gone_are_forgotten_after_a_week() -> None:
    """Nodes that are replaced all the time have ever new names."""
    exporters, day = JudgedExporters(), 86_400.0
    exporters.answer(claims(REAL))
    for days, known in ((6, len(NODES)), (2, 1)):
        exporters.answer(claims(REAL, ["n1"]), after=days * day)
        assert len(exporters.ownership.owners) == known
    assert exporters.answer(claims(REAL)) == real()


class CountedClaims(list[ExporterClaim]):
    """Claims that count how often all of them are read."""

    times = 0

    def __iter__(self) -> Iterator[ExporterClaim]:
        self.times += 1
        return super().__iter__()


def test_silent_exporters_of_many_namespaces_do_not_multiply_the_work() -> None:
    """Exporters of each namespace are a source, and a job that scrapes all annotated pods has thousands."""
    times = []
    for namespaces in (1, 50):
        silent = [
            claim
            for number in range(namespaces)
            for claim in claims((("job", "pods"), ("namespace", f"t{number}")), ["n1"], own=False, live=False)
        ]
        found = CountedClaims([*claims(REAL), *silent])
        assert len(judge_claims(Ownership(AT), found, AT).refused) == namespaces
        times.append(found.times)
    assert times[0] == times[1]
