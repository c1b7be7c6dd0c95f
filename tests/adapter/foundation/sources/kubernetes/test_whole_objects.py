"""The same Structs come from a watch, from a JSON file and from a YAML file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import pytest
import yaml

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.sources.manifest_forms import GroupKind, ManifestError
from adapter.foundation.sources.manifests import read_manifests, read_objects
from adapter.foundation.time.backoff import Backoff
from adapter.foundation.time.pace import UNPACED
from tests.support.waiting import until

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.fake_apiserver import FakeApiServer

Quantity: TypeAlias = "str | int | float"


class Meta(msgspec.Struct):
    name: str
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Condition(msgspec.Struct):
    type: str
    status: str


class NodeStatus(msgspec.Struct):
    capacity: dict[str, Quantity]
    conditions: list[Condition]


class NodeSpec(msgspec.Struct):
    unschedulable: bool = False


class Node(msgspec.Struct):
    metadata: Meta
    status: NodeStatus
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)


class Resources(msgspec.Struct):
    requests: dict[str, Quantity] | None = None


class Container(msgspec.Struct):
    name: str
    args: list[str] | None = None
    resources: Resources = msgspec.field(default_factory=Resources)


class PodSpec(msgspec.Struct):
    containers: list[Container]
    priority: int | None = None
    host_network: bool = msgspec.field(name="hostNetwork", default=False)


class Pod(msgspec.Struct):
    metadata: Meta
    spec: PodSpec


class DeploymentSpec(msgspec.Struct):
    replicas: int | None = None
    paused: bool = False
    weight: float = 0.0


class Deployment(msgspec.Struct):
    metadata: Meta
    spec: DeploymentSpec


Whole: TypeAlias = "Node | Pod | Deployment"

FORMS: dict[GroupKind, type[msgspec.Struct]] = {
    GroupKind("", "Node"): Node,
    GroupKind("", "Pod"): Pod,
    GroupKind("apps", "Deployment"): Deployment,
}

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: "1", spot: "true"}}
spec: {unschedulable: yes}
status:
  capacity: {cpu: 4, memory: 16Gi, pods: "110", example.com/gpu: 0x2, ephemeral-storage: 1_000, share: 0.5}
  conditions:
  - {type: Ready, status: "True"}
  - {type: DiskPressure, status: "False"}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  annotations:
    at: 1:30
    notes: |
      first line
      5
spec:
  priority: -10
  hostNetwork: false
  containers:
  - name: web
    args: ["8080", '0.5', "null", "yes", folded]
    resources: &small {requests: {cpu: 100m, memory: 64Mi, hugepages-2Mi: 0}}
  - {name: proxy, args: null, resources: *small}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: ~}
spec: {replicas: 010, paused: off, weight: 2.5e+0}
"""
SMALL = Resources({"cpu": "100m", "memory": "64Mi", "hugepages-2Mi": 0})
WEB = Container("web", ["8080", "0.5", "null", "yes", "folded"], SMALL)

OBJECTS: dict[str, tuple[str, str, Whole]] = {
    "node": (
        "nodes",
        NODE,
        Node(
            Meta("n1", labels={"zone": "1", "spot": "true"}),
            NodeStatus(
                {
                    "cpu": 4,
                    "memory": "16Gi",
                    "pods": "110",
                    "example.com/gpu": 2,
                    "ephemeral-storage": 1000,
                    "share": 0.5,
                },
                [Condition("Ready", "True"), Condition("DiskPressure", "False")],
            ),
            NodeSpec(unschedulable=True),
        ),
    ),
    "pod": (
        "pods",
        POD,
        Pod(
            Meta("web-1", "shop", annotations={"at": "1:30", "notes": "first line\n5\n"}),
            PodSpec([WEB, Container("proxy", None, SMALL)], -10),
        ),
    ),
    "deployment": ("deployments", DEPLOYMENT, Deployment(Meta("web", "shop"), DeploymentSpec(8, weight=2.5))),
}


class Kept:
    """A store that keeps whole objects."""

    def __init__(self) -> None:
        self.objects: dict[str, Whole] = {}

    def __len__(self) -> int:
        return len(self.objects)

    def replacement(self) -> Kept:
        return self

    def commit(self) -> None:
        return

    def put(self, item: Whole) -> None:
        self.objects[item.metadata.name] = item

    def remove(self, namespace: str | None, name: str) -> None:
        raise AssertionError(f"{namespace}/{name} is not deleted")


def whole(body: str, *, is_json: bool) -> list[msgspec.Struct | None]:
    parts = read_objects(body.encode(), FORMS, is_json=is_json, pace=UNPACED)
    return [found.whole for part in parts for found in part]


@pytest.mark.parametrize(("plural", "text", "expected"), OBJECTS.values(), ids=OBJECTS.keys())
def test_watch_json_and_yaml_give_equal_structs(
    plural: str, text: str, expected: Whole, server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    from_yaml = whole(text, is_json=False)
    assert from_yaml == [expected]
    document = msgspec.to_builtins(expected) | {key: yaml.safe_load(text)[key] for key in ("kind", "apiVersion")}
    assert whole(json.dumps(document), is_json=True) == [expected]
    assert whole(json.dumps({"kind": "List", "items": [document, document]}), is_json=True) == [expected] * 2

    metadata, kept = document.pop("metadata"), Kept()
    resource = find_resource(BUILT_IN, "", plural)
    server.metadata_only = False
    settings = WatchSettings(backoff=lambda: Backoff(longest_seconds=0.1))
    reflector: Reflector[Whole] = Reflector(client, ListWatch(resource, WHOLE_OBJECTS), type(expected), kept, settings)
    for name in ("listed", "watched"):
        content = {key: document[key] for key in ("spec", "status") if key in document}
        server.store.put(resource, metadata["namespace"] or "", name, metadata["labels"] or {}, content)
        if name == "listed":
            tasks.start("watch", reflector.run)
            until(lambda: server.watching(plural) == 1)
    until(lambda: len(kept) == 2)
    for name, found in kept.objects.items():
        assert found.metadata.name == name
        found.metadata = expected.metadata
        assert found == expected


def test_kinds_without_a_form_and_mixed_lists_are_read_in_order() -> None:
    text = f"{POD}---\napiVersion: v1\nkind: Service\nmetadata: {{name: web}}\n---\n{NODE}"
    found = whole(text, is_json=False)
    assert [type(one) for one in found] == [Pod, type(None), Node]
    assert [one.kind for part in read_manifests(text.encode(), is_json=False, pace=UNPACED) for one in part] == [
        "Pod",
        "Service",
        "Node",
    ]


SCALARS: dict[str, object] = {
    "0": 0,
    "-7": -7,
    "+7": 7,
    "0x1F": 31,
    "0b11": 3,
    "017": 15,
    "1_000": 1000,
    "1.50": 1.5,
    ".5": 0.5,
    "6.02e+23": 6.02e23,
    "18446744073709551615": 18446744073709551615,
    "18446744073709551616": 18446744073709551616.0,
    "true": True,
    "No": False,
    "null": None,
    "~": None,
    "": None,
    "100m": "100m",
    "16Gi": "16Gi",
    "1e3": "1e3",
    '"5"': "5",
    "'true'": "true",
    "!!str 5": "5",
    "!!int 5": 5,
    "!!float 5": 5.0,
    "1:30": "1:30",
    "190:20:30.15": "190:20:30.15",
    ".inf": ".inf",
    ".nan": ".nan",
    "2026-01-01": "2026-01-01",
    "9" * 5000: "9" * 5000,
}


class Scalar(msgspec.Struct):
    value: object


class WithScalar(msgspec.Struct):
    spec: Scalar


def scalar(text: str) -> object:
    document = f"apiVersion: v1\nkind: Scalar\nmetadata: {{name: a}}\nspec:\n  value: {text}\n"
    parts = read_objects(document.encode(), {GroupKind("", "Scalar"): WithScalar}, is_json=False, pace=UNPACED)
    (found,) = (found.whole for part in parts for found in part)
    assert isinstance(found, WithScalar)
    return found.spec.value


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=[text[:24] for text in SCALARS])
def test_a_scalar_has_the_value_that_kubernetes_reads(text: str, value: object) -> None:
    found = scalar(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("text", ["!!int a", "!!int 1.5", "!!float .inf", "!!bool maybe"])
def test_a_scalar_that_does_not_match_its_tag_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ManifestError) as raised:
        scalar(text)
    assert raised.value.line == 5


@pytest.mark.parametrize("is_json", [True, False], ids=["JSON", "YAML"])
def test_a_field_of_another_type_is_refused_with_the_name_of_the_object(*, is_json: bool) -> None:
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": "3"}}
    with pytest.raises(
        ManifestError, match=r"Deployment web: Expected `int \| null`, got `str` - at `\$.spec.replicas`"
    ):
        whole(json.dumps(document) if is_json else yaml.safe_dump(document), is_json=is_json)
