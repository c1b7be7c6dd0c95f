from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from adapter.foundation.time.pace import UNPACED, Pace
from adapter.foundation.web.rendering import GZIP_FROM_BYTES
from adapter.metrics.apis.discovery.lists import ResourceLists
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from tests.adapter.metrics.apis.fakes import BRANDS, DEPLOYMENTS, KINDS, NAMESPACES, custom_metric, external_metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
GROUP_VERSIONS = [(CUSTOM, "v1beta1"), (CUSTOM, "v1beta2"), (EXTERNAL, "v1beta1")]
EMPTY = Catalogue()

T = TypeVar("T")


class ByThree(Pace):
    def slices(self, items: Iterable[T], size: int = 3) -> Iterator[list[T]]:
        return super().slices(items, size)


BY_THREE = ByThree(pause_seconds=0.0)


def listed(lists: ResourceLists, group: str = CUSTOM, version: str = "v1beta2") -> list[dict[str, Any]]:
    resources: list[dict[str, Any]] = json.loads(lists.get(group, version).body)["resources"]
    return resources


@pytest.fixture(name="catalogue")
def _catalogue() -> Catalogue:
    metrics = [
        custom_metric("http_rps", NAMESPACES),
        external_metric("queue_depth"),
        custom_metric("http_rps"),
        custom_metric("http_rps", DEPLOYMENTS),
    ]
    return Catalogue(metrics, generation=1)


@pytest.fixture(name="many", scope="module")
def _many() -> Catalogue:
    """Return a catalogue whose list is more than large enough to be compressed."""
    metrics = [custom_metric(f"metric_{number:04}", kind) for number in range(300) for kind in KINDS]
    return Catalogue([*metrics, *(external_metric(f"queue_{number:04}") for number in range(2000))], generation=1)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_custom_metrics_are_listed_byte_for_byte(catalogue: Catalogue, version: str) -> None:
    assert (
        ResourceLists(catalogue).get(CUSTOM, version).body
        == (
            b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"custom.metrics.k8s.io/%b","resources":['
            b'{"name":"deployments.apps/http_rps","singularName":"","namespaced":true,"kind":"MetricValueList","verbs":["get"]},'
            b'{"name":"namespaces/http_rps","singularName":"","namespaced":false,"kind":"MetricValueList","verbs":["get"]},'
            b'{"name":"pods/http_rps","singularName":"","namespaced":true,"kind":"MetricValueList","verbs":["get"]}]}\n'
        )
        % version.encode()
    )


def test_external_metrics_are_listed_byte_for_byte(catalogue: Catalogue) -> None:
    assert ResourceLists(catalogue).get(EXTERNAL, "v1beta1").body == (
        b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"external.metrics.k8s.io/v1beta1","resources":['
        b'{"name":"queue_depth","singularName":"","namespaced":true,"kind":"ExternalMetricValueList","verbs":["get"]}]}\n'
    )


@pytest.mark.parametrize(("group", "version"), GROUP_VERSIONS)
def test_without_metrics_the_list_is_empty_and_not_null(group: str, version: str) -> None:
    lists = ResourceLists(EMPTY)
    assert listed(lists, group, version) == []
    lists.prepare(Catalogue(), BY_THREE)
    assert listed(lists, group, version) == []


def test_a_prepared_list_is_served_until_the_next_one_is_prepared(catalogue: Catalogue) -> None:
    lists = ResourceLists(catalogue)
    first = lists.get(CUSTOM, "v1beta1")
    assert lists.get(CUSTOM, "v1beta1") is first
    lists.prepare(catalogue, BY_THREE)
    assert lists.get(CUSTOM, "v1beta1") is first
    lists.prepare(Catalogue([external_metric("new")], 2), BY_THREE)
    assert (len(listed(lists)), len(listed(lists, EXTERNAL, "v1beta1"))) == (0, 1)


def test_former_lists_are_served_whole_while_new_ones_are_prepared(catalogue: Catalogue, many: Catalogue) -> None:
    lists = ResourceLists(catalogue)
    before = {key: lists.get(*key) for key in GROUP_VERSIONS}
    pauses = 0

    class Looking(ByThree):
        def slices(self, items: Iterable[T], size: int = 3) -> Iterator[list[T]]:
            nonlocal pauses
            for part in super().slices(items, size):
                pauses += 1
                assert all(lists.get(*key) is response for key, response in before.items())
                yield part

    lists.prepare(many, Looking(pause_seconds=0.0))
    assert pauses >= (300 * len(KINDS) + 2000) / 3
    assert len(listed(lists)) == 300 * len(KINDS)


@pytest.mark.parametrize(("group", "version"), GROUP_VERSIONS)
def test_a_list_prepared_in_slices_has_the_same_bytes(many: Catalogue, group: str, version: str) -> None:
    cut = ResourceLists(EMPTY)
    cut.prepare(many, BY_THREE)
    assert cut.get(group, version).body == ResourceLists(many).get(group, version).body


@pytest.mark.parametrize(("group", "version"), GROUP_VERSIONS)
def test_a_long_list_is_compressed_in_advance_and_a_short_one_is_not(
    catalogue: Catalogue, many: Catalogue, group: str, version: str
) -> None:
    assert ResourceLists(catalogue).get(group, version).gzipped is None
    response = ResourceLists(many).get(group, version)
    assert len(response.body) > GZIP_FROM_BYTES
    assert response.gzipped is not None
    assert len(response.gzipped) < len(response.body) / 10
    assert gzip.decompress(response.gzipped) == response.body


def test_all_entries_of_a_kind_agree_on_their_scope(many: Catalogue) -> None:
    scopes: dict[str, set[bool]] = {}
    for entry in listed(ResourceLists(many)):
        scopes.setdefault(entry["name"].partition("/")[0], set()).add(entry["namespaced"])
    assert scopes == {kind.qualified: {kind.namespaced} for kind in KINDS}


@pytest.mark.parametrize("pace", [UNPACED, BY_THREE])
def test_a_kind_known_in_two_scopes_is_listed_in_one_scope(pace: Pace) -> None:
    elsewhere = replace(BRANDS, namespaced=not BRANDS.namespaced)
    metrics = [custom_metric(name, kind) for name in "abcd" for kind in (BRANDS, elsewhere)]
    lists = ResourceLists(EMPTY)
    lists.prepare(Catalogue([*metrics, custom_metric("a")], 1), pace)
    entries = listed(lists)
    brands = [entry for entry in entries if entry["name"].startswith("brands.cheese.io/")]
    assert [entry["name"][-1] for entry in brands] == list("abcd")
    assert len({entry["namespaced"] for entry in brands}) == 1
    assert [entry["name"] for entry in entries if entry not in brands] == ["pods/a"]


def test_names_that_json_must_escape_are_escaped() -> None:
    names = ['say "hi"', "back\\slash", "café", "ns:rps:rate5m", "new\nline"]
    lists = ResourceLists(Catalogue(map(external_metric, names), 1))
    assert sorted(entry["name"] for entry in listed(lists, EXTERNAL, "v1beta1")) == sorted(names)
