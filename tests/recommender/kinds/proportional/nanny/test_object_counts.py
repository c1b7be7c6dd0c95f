"""Numbers of objects are read from the metrics of kube-apiserver."""

from __future__ import annotations

import pytest

from recommender.kinds.proportional.nanny.object_counts import CountError, counted_objects

NEW = 'apiserver_resource_objects{group="",resource="nodes"} 7'
OTHER_GROUP = 'apiserver_resource_objects{group="metrics.k8s.io",resource="nodes"} 99'
USUAL = 'apiserver_storage_objects{resource="nodes"} 6'
OLD = 'etcd_object_counts{resource="nodes"} 5'


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([OTHER_GROUP, OLD, USUAL, NEW], 7),
        ([OTHER_GROUP, OLD, USUAL], 6),
        ([OLD], 5),
        (["# TYPE etcd_object_counts gauge", OLD.replace(" 5", " 1.2e+03")], 1200),
        ([NEW.replace(" 7", " -1"), USUAL], 6),
    ],
)
def test_the_newest_metric_with_a_value_counts(lines: list[str], count: int) -> None:
    assert counted_objects([line.encode() for line in lines], "nodes") == count


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "the number of nodes is missing"),
        ([OTHER_GROUP], "the number of nodes is missing"),
        ([USUAL.replace(" 6", " -1")], "is not known to this API server"),
        ([USUAL.replace(" 6", " NaN")], "is not known to this API server"),
        ([USUAL.replace(" 6", " x")], "is not known to this API server"),
    ],
)
def test_a_missing_number_is_an_error_and_not_zero(lines: list[str], reason: str) -> None:
    with pytest.raises(CountError, match=reason):
        counted_objects([line.encode() for line in lines], "nodes")
