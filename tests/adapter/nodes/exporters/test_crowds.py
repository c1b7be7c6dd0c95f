"""Which sources are left out, and by which labels."""

from __future__ import annotations

import pytest

from adapter.nodes.exporters.claims import Source, source_of
from adapter.nodes.exporters.crowds import left_out, most_exporters

MOST = 1000
OURS, CROWD = 3, 70_000


def source(job: str = "", namespace: str = "", old_namespace: str = "") -> Source:
    return source_of({"job": job, "namespace": namespace, "kubernetes_namespace": old_namespace})


EVIL = source("pods", "evil")


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
    ],
    ids=[
        "nobody",
        "as many as are allowed",
        "a job of its own",
        "a job that others have too",
        "older labels",
        "two of one tenant",
        "no job",
        "a quote",
        "no label to tell it by",
    ],
)
def test_a_crowd_is_left_out_by_a_label_that_ours_does_not_have(
    sources: dict[Source, int], matchers: tuple[str, ...]
) -> None:
    found = left_out(sources, MOST)
    assert found.matchers == matchers
    assert not any(found.covers(one) for one, count in sources.items() if count == OURS)


@pytest.mark.parametrize(("nodes", "most"), [(None, 20_000), (0, 1000), (3, 1000), (5000, 20_000)])
def test_a_source_may_have_several_exporters_for_each_node(nodes: int | None, most: int) -> None:
    assert most_exporters(nodes) == most
