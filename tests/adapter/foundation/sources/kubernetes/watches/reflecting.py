"""Reflectors of metadata, with waits that are short enough for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.metadata import PartialObjectMetadata
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.objects.selectors import parse_selector
from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.time.backoff import Backoff

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.object_index import ObjectIndex
    from tests.support.fake_apiserver import FakeApiServer


PODS = find_resource(BUILT_IN, "", "pods")
SETTINGS = WatchSettings(
    page_size=2,
    window_seconds=(60.0, 60.0),
    silence_seconds=5.0,
    backoff=lambda: Backoff(first_seconds=0.01, longest_seconds=0.05),
)


class MetadataReflector(Reflector[PartialObjectMetadata]):
    def __init__(
        self, client: KubernetesClient, resource: Resource, index: ObjectIndex, settings: WatchSettings
    ) -> None:
        super().__init__(client, ListWatch(resource), PartialObjectMetadata, index, settings)
        self.index = index


def pods(reflector: MetadataReflector, selector: str = "", namespace: str = "shop") -> tuple[str, ...]:
    return reflector.index.names(namespace, parse_selector(selector))


def fill(server: FakeApiServer, count: int) -> tuple[str, ...]:
    names = tuple(f"web-{number:02d}" for number in range(count))
    for name in names:
        server.put("pods", "shop", name, {"app": "web", "pod": name})
    return names


def listed(*items: str) -> bytes:
    head = '"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"'
    return f'{{{head},"items":[{",".join(items)}],"metadata":{{"resourceVersion":"1"}}}}'.encode()
