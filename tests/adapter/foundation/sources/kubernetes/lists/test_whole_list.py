"""Lists of whole collections, without a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.list_watch import (
    METADATA_ONLY,
    WHOLE_OBJECTS,
    AcceptHeaders,
    ListWatch,
)
from adapter.foundation.sources.kubernetes.lists.whole_list import whole_list
from tests.recommender.commands.cluster_harness import put_nodes
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NODES = find_resource(BUILT_IN, "", "nodes")


class Metadata(msgspec.Struct):
    name: str


class Named(msgspec.Struct):
    metadata: Metadata


class Numbered(msgspec.Struct):
    metadata: int


@pytest.fixture
def server() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as server:
        yield server


def client_of(server: ObjectApiServer, folder: Path) -> KubernetesClient:
    return KubernetesClient(from_kubeconfig(str(server.kubeconfig(folder / "kubeconfig"))))


@pytest.mark.parametrize("accept", [WHOLE_OBJECTS, METADATA_ONLY], ids=["whole objects", "metadata"])
@pytest.mark.parametrize("count", [0, 1, 450])
def test_all_pages_are_read(server: ObjectApiServer, tmp_path: Path, accept: AcceptHeaders, count: int) -> None:
    put_nodes(server, count)
    found = {each.metadata.name for each in whole_list(client_of(server, tmp_path), ListWatch(NODES, accept), Named)}
    assert found == {f"n{number}" for number in range(count)}


def test_an_unreadable_object_is_an_error_of_the_list(server: ObjectApiServer, tmp_path: Path) -> None:
    put_nodes(server, 2)
    with pytest.raises(UnexpectedResponseError, match="not a list of objects"):
        list(whole_list(client_of(server, tmp_path), ListWatch(NODES, WHOLE_OBJECTS), Numbered))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"kind": "NodeList", "apiVersion": "v1"}, "there is no list under the key `items`"),
        ({"kind": "PodList", "apiVersion": "v1", "items": []}, "a list of PodList of v1, not a NodeList of v1"),
        ({"kind": "NodeList", "apiVersion": "v1", "items": [], "metadata": {"continue": "a"}}, "the list does not end"),
    ],
)
def test_an_answer_that_is_not_the_requested_list_is_refused(
    server: ObjectApiServer, tmp_path: Path, document: dict[str, object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.foundation.sources.kubernetes.lists.whole_list._MOST_PAGES", 3)
    server.answers["/api/v1/nodes"] = (200, document)
    with pytest.raises(UnexpectedResponseError, match=reason):
        list(whole_list(client_of(server, tmp_path), ListWatch(NODES, WHOLE_OBJECTS), Named))


def test_a_list_that_breaks_off_is_an_error(server: ObjectApiServer, tmp_path: Path) -> None:
    put_nodes(server, 250)
    found = whole_list(client_of(server, tmp_path), ListWatch(NODES, WHOLE_OBJECTS), Named)
    next(found)
    server.forbid("list", "nodes")
    with pytest.raises(KubernetesError, match="403"):
        list(found)
