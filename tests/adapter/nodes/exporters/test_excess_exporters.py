"""The sources that are left out, and the labels that exclude them."""

from __future__ import annotations

from collections import Counter

import pytest

from adapter.nodes.exporters.claims import Source, source_of
from adapter.nodes.exporters.excess_exporters import CrowdedOut, left_out, left_out_series, most_exporters
from adapter.nodes.model.loads import LoadResource

MOST = 1000
OURS, CROWD = 3, 70_000


def source(job: str = "", namespace: str = "", old_namespace: str = "") -> Source:
    return source_of({"job": job, "namespace": namespace, "kubernetes_namespace": old_namespace})


EVIL = source("pods", "evil")


def crowds(sources: dict[Source, int]) -> CrowdedOut:
    of_namespaces: Counter[Source] = Counter()
    for one, count in sources.items():
        of_namespaces.update({(pair,): count for pair in one if pair[0] != "job"})
    return left_out(sources, of_namespaces, MOST)


@pytest.mark.parametrize(
    ("sources", "matchers"),
    [
        ({source("node-exporter"): OURS}, ()),
        ({source("node-exporter"): OURS, EVIL: MOST}, ()),
        ({source("node-exporter", "ours"): OURS, EVIL: CROWD}, ('job!="pods"',)),
        ({source("pods", "ours"): OURS, EVIL: CROWD}, ('namespace!="evil"',)),
        ({source("pods", "", "ours"): OURS, source("pods", "", "evil"): CROWD}, ('kubernetes_namespace!="evil"',)),
        (
            {source("pods"): OURS, source("pods", "evil"): CROWD, source("x", "evil"): CROWD},
            ('job!="x"', 'namespace!="evil"'),
        ),
        ({source("", "evil"): CROWD}, ('namespace!="evil"',)),
        ({source('a"b'): CROWD}, ('job!="a\\"b"',)),
        ({source(): CROWD}, ()),
        (
            {source("pods", "ours"): OURS} | {source(f"pods-{number}", "evil"): MOST // 4 for number in range(5)},
            ('namespace!="evil"',),
        ),
        (
            {source("pods", "", "ours"): OURS} | {source("pods", f"made-up-{n}", "evil"): MOST // 4 for n in range(5)},
            ('kubernetes_namespace!="evil"',),
        ),
        ({source("node-exporter", "ours"): MOST, source("node-exporter", "others"): MOST}, ()),
    ],
    ids=[
        "no crowd",
        "as many as are allowed",
        "a job of its own",
        "a job that others have too",
        "older labels",
        "two of one tenant",
        "no job",
        "a quote",
        "no label that distinguishes it",
        "many jobs of one tenant",
        "many made-up namespaces of one tenant",
        "one job of many tenants",
    ],
)
def test_too_many_exporters_are_excluded_by_a_label_that_the_real_ones_do_not_have(
    sources: dict[Source, int], matchers: tuple[str, ...]
) -> None:
    found = crowds(sources)
    assert found.matchers == matchers
    assert not any(found.covers(one) for one, count in sources.items() if count == OURS)


@pytest.mark.parametrize(
    ("sources", "named"),
    [
        ({source("pods", "evil"): CROWD}, {"job pods in evil exports the load of 70000 nodes"}),
        (
            {source(f"pods-{number}", "evil"): MOST for number in range(3)},
            {"what is scraped in evil exports the load of 3000 nodes"},
        ),
        ({source(): CROWD}, set[str]()),
    ],
    ids=["a job", "a namespace", "nothing that could be left out"],
)
def test_each_excluded_source_is_reported_once(sources: dict[Source, int], named: set[str]) -> None:
    found = {resource: crowds(sources) for resource in (LoadResource.CPU, LoadResource.MEMORY)}
    entries = left_out_series(found)
    assert {one.refused_for.partition(",")[0] for one in entries} == named
    assert all(one.resources == tuple(found) for one in entries)


@pytest.mark.parametrize(("nodes", "most"), [(None, 20_000), (0, 1000), (3, 1000), (5000, 20_000)])
def test_a_source_may_have_several_exporters_for_each_node(nodes: int | None, most: int) -> None:
    assert most_exporters(nodes) == most
