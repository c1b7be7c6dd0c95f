from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.object_folder import FileObjects, FileProblem
from adapter.foundation.sources.objects import ObjectsError, ObjectsNotServedError, ObjectsNotSyncedError, ObjectSource
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PODS = find_resource(BUILT_IN, "", "pods")
NODES = find_resource(BUILT_IN, "", "nodes")
DEPLOYMENTS = find_resource(BUILT_IN, "apps", "deployments")
Names = tuple[str, ...]


class Folder:
    """A folder whose files are correctly replaced by renaming, and the source that reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[FileProblem] = []
        self.source = FileObjects(path, UNPACED, self.problems.append)

    def write(self, name: str, content: object) -> None:
        text = content if isinstance(content, (str, bytes)) else _dump(name)(content)
        data = text if isinstance(text, bytes) else text.encode()
        new = self.path / f".{name}.new"
        new.write_bytes(data)
        new.rename(self.path / name)

    def pods(self, selector: str = "", namespace: str = "shop") -> Names:
        self.source.refresh()
        return tuple(self.source.names(PODS, namespace, parse_selector(selector)))

    def new_reports(self) -> list[str]:
        """Return the problems since the last call, without the folder's path."""
        reported = [str(problem).removeprefix(f"{self.path}/") for problem in self.problems]
        self.problems.clear()
        return reported


def _dump(name: str) -> Callable[[object], str]:
    return json.dumps if name.endswith(".json") else yaml.safe_dump


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def pod(name: str, labels: Mapping[str, Any] | None = None, namespace: str | None = "shop") -> dict[str, Any]:
    metadata = {"name": name, "labels": dict(labels or {"app": "web"})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | ({"namespace": namespace} if namespace else {})}


def listed(*items: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items), "metadata": {"resourceVersion": ""}}


def test_a_folder_of_files_is_an_object_source(folder: Folder) -> None:
    source: ObjectSource = folder.source
    assert source.resource("", "pod") == PODS


@pytest.mark.parametrize("name", ["pods.json", "pods.yaml"])
def test_a_file_is_an_object_or_a_list(folder: Folder, name: str) -> None:
    folder.write(name, pod("a"))
    assert folder.pods() == ("a",)
    folder.write(name, listed(pod("b"), pod("c", {"app": "db"}), pod("d", namespace="chat")))
    assert folder.pods() == ("b", "c")
    assert folder.pods("app=db") == ("c",)
    assert folder.source.namespaces_of(PODS) == ("chat", "shop")
    assert folder.source.labels_of(PODS, "shop", "c") == {"app": "db"}
    assert folder.source.labels_of(PODS, "shop", "d") is None
    assert folder.new_reports() == []


@pytest.mark.parametrize("name", ["pods.json", "pods.yaml"])
def test_items_of_a_typed_list_need_not_repeat_their_kind(folder: Folder, name: str) -> None:
    bare = pod("a")
    del bare["kind"], bare["apiVersion"]
    head = {"kind": "PodList", "apiVersion": "v1"}
    content = {**head, "items": [bare]}
    folder.write(name, json.dumps(content) if name == "pods.json" else yaml.safe_dump(content, sort_keys=False))
    assert folder.pods() == ("a",)


def test_several_yaml_documents_in_a_file_are_read(folder: Folder) -> None:
    folder.write("all.yaml", "---\n" + "\n---\n".join(yaml.safe_dump(pod(name)) for name in ("a", "b")) + "\n---\n")
    assert folder.pods() == ("a", "b")
    assert folder.new_reports() == []


def test_yaml_flow_style_and_aliases_are_read(folder: Folder) -> None:
    folder.write(
        "pods.yaml",
        """\
kind: List
apiVersion: v1
items:
- {kind: Pod, apiVersion: v1, metadata: {name: a, namespace: shop, labels: &labels {app: web}}, spec: {n: [1, null]}}
- {kind: Pod, apiVersion: v1, metadata: {name: "b", namespace: shop, labels: *labels, creationTimestamp: 2026-01-01}}
""",
    )
    assert folder.pods("app=web") == ("a", "b")
    assert folder.new_reports() == []


def test_objects_of_several_kinds_and_files_are_read(folder: Folder) -> None:
    folder.write("a.json", listed(pod("a"), {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}))
    folder.write(
        "b.yaml", {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web", "namespace": "shop"}}
    )
    assert folder.pods() == ("a",)
    assert folder.source.names(NODES, None, EVERYTHING) == ("n1",)
    assert folder.source.names(DEPLOYMENTS, "shop", EVERYTHING) == ("web",)


def test_an_object_without_a_namespace_is_in_default(folder: Folder) -> None:
    folder.write("a.json", pod("a", namespace=None))
    assert folder.pods(namespace="default") == ("a",)


def test_other_files_are_ignored(folder: Folder) -> None:
    folder.write("notes.txt", "not an object")
    folder.write("a.json.bak", "not an object")
    assert folder.pods() == ()
    assert folder.new_reports() == []


def test_nothing_is_known_before_the_first_refresh(folder: Folder) -> None:
    assert not folder.source.is_synced(PODS)
    with pytest.raises(ObjectsNotSyncedError, match="have not been read yet"):
        folder.source.names(PODS, "shop", EVERYTHING)
    folder.source.refresh()
    assert folder.source.is_synced(PODS)
    assert folder.source.names(PODS, "shop", EVERYTHING) == ()


def test_a_missing_folder_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ObjectsError, match=r"objects from .*missing: No such file or directory: name a folder"):
        FileObjects(tmp_path / "missing")


def test_a_removed_folder_keeps_its_known_objects(folder: Folder) -> None:
    folder.write("a.json", pod("a"))
    assert folder.pods() == ("a",)
    (folder.path / "a.json").unlink()
    folder.path.rmdir()
    with pytest.raises(ObjectsError):
        folder.source.refresh()
    assert folder.source.names(PODS, "shop", EVERYTHING) == ("a",)


def test_the_objects_of_a_removed_file_are_removed(folder: Folder) -> None:
    folder.write("a.json", pod("a"))
    folder.write("b.json", pod("b"))
    assert folder.pods() == ("a", "b")
    (folder.path / "a.json").unlink()
    assert folder.pods() == ("b",)


def test_a_file_that_is_replaced_by_one_of_the_same_size_and_time_is_read(folder: Folder) -> None:
    folder.write("a.json", pod("a"))
    stamp = (folder.path / "a.json").stat()
    assert folder.pods() == ("a",)
    folder.write("a.json", pod("b"))
    os.utime(folder.path / "a.json", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert folder.pods() == ("b",)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_a_byte_order_mark_determines_the_encoding_of_a_file(folder: Folder, name: str, encoding: str) -> None:
    folder.write(name, pod("a"))
    path = folder.path / name
    path.write_bytes(path.read_bytes().decode().encode(encoding))
    assert folder.pods() == ("a",)


def test_a_file_that_did_not_change_is_not_read_again(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("a.json", pod("a"))
    assert folder.pods() == ("a",)
    monkeypatch.setattr("adapter.foundation.sources.object_folder.read_manifests", _never)
    assert folder.pods() == ("a",)


def _never(*_arguments: object, **_more: object) -> None:
    raise AssertionError("read again")


BROKEN = {
    "cut JSON": ("a.json", b'{"kind": "Pod"', "a.json: Input data was truncated"),
    "bad JSON": ("a.json", b'{\n"kind": "Pod",\n"metadata" {}}', "a.json:3: JSON is malformed: expected ':'"),
    "bad item": ("a.json", b'{"items": [\n{"kind": "Pod"},\n{"kind" 1}\n]}', "a.json:3: JSON is malformed"),
    "JSON, not UTF-8": ("a.json", b'{"kind": "\xff"}', "a.json: not UTF-8"),
    "JSON, cut UTF-16": ("a.json", b"\xff\xfe{", "a.json: not UTF-16: truncated data"),
    "YAML, cut UTF-16": ("a.yaml", b"\xff\xfe{", "a.yaml: not UTF-16: truncated data"),
    "a JSON list": ("a.json", b"[]", "a.json: Expected `object`, got `array`"),
    "deep JSON": ("a.json", b'{"spec": ' + b"[" * 100_000, "a.json: nested too deeply"),
    "bad YAML": ("a.yaml", b"kind: Pod\nmetadata: {name: a\n", "a.yaml:3: not YAML: did not find expected"),
    "YAML, not UTF-8": ("a.yaml", b"kind: \xff", "a.yaml: not YAML"),
    "deep YAML": ("a.yaml", b"a: " + b"[" * 5000, "a.yaml:1: more than 100 levels of nesting"),
    "a YAML list": ("a.yaml", b"- kind: Pod", "a.yaml:1: expected an object"),
    "a YAML item": ("a.yaml", b"kind: List\nitems:\n- 5", "a.yaml:3: expected an object in the items"),
    "unknown alias": ("a.yaml", b"kind: Pod\nmetadata: *a", "a.yaml:2: alias *a has no anchor"),
    "key twice": ("a.yaml", b"kind: Pod\nkind: Node", "a.yaml:2: the key 'kind' is repeated"),
    "key of many": ("a.yaml", b"kind: Pod\n? [a]\n: b", "a.yaml:1: a key that is not a scalar"),
    "empty JSON": ("a.json", b"", "a.json: the file is empty"),
    "empty YAML": ("a.yaml", b" \n", "a.yaml: the file is empty"),
    "no kind": ("a.json", b'{"metadata": {"name": "a"}}', "a.json: object a: kind is missing"),
    "no version": ("a.json", b'{"kind": "Pod", "metadata": {"name": "a"}}', "a.json: Pod a: apiVersion is missing"),
    "no name": ("a.json", b'{"kind": "Pod", "apiVersion": "v1"}', "a.json: Pod without a name: metadata.name"),
    "list in a list": (
        "a.json",
        b'{"kind": "List", "items": [{"kind": "List", "apiVersion": "v1", "metadata": {"name": "a"}}]}',
        "a.json: a List inside a List",
    ),
    "number as label, JSON": (
        "a.json",
        b'{"kind": "Pod", "metadata": {"name": "a", "labels": {"app": 5}}}',
        "a.json: Expected `str`, got `int`",
    ),
    "number as label, YAML": (
        "a.yaml",
        b"kind: List\nitems:\n- kind: Pod\n  metadata: {name: a, labels: {app: 5}}",
        "a.yaml:3: Expected `str`, got `int`",
    ),
    "bad definition": (
        "a.json",
        b'{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "a"}}',
        "a.json: CustomResourceDefinition a: spec",
    ),
    "definition that is not UTF-8": (
        "a.json",
        (
            b'{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "a"},'
            b' "spec": {"group": "\xff"}}'
        ),
        "a.json: CustomResourceDefinition a: spec: 'utf-8' codec",
    ),
}


@pytest.mark.parametrize(("name", "content", "reported"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_reported_once_and_its_last_good_content_stays_in_use(
    folder: Folder, name: str, content: bytes, reported: str
) -> None:
    folder.write(name, pod("a"))
    folder.write("other.json", pod("z"))
    assert folder.pods() == ("a", "z")
    folder.write(name, content)
    assert folder.pods() == ("a", "z")
    assert [problem[: len(reported)] for problem in folder.new_reports()] == [reported]
    folder.write("other.json", pod("y"))
    assert folder.pods() == ("a", "y")
    assert folder.new_reports() == []
    folder.write(name, pod("b"))
    assert folder.pods() == ("b", "y")
    assert folder.new_reports() == []


def test_a_file_that_was_never_valid_has_no_objects_and_does_not_affect_others(folder: Folder) -> None:
    folder.write("a.json", "{")
    folder.write("b.json", pod("b"))
    assert folder.pods() == ("b",)
    assert len(folder.new_reports()) == 1


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_path_that_is_not_a_regular_file_is_reported_once_and_not_read(
    folder: Folder, make: Callable[[Path], None]
) -> None:
    make(folder.path / "a.json")
    folder.write("b.json", pod("b"))
    assert folder.pods() == ("b",)
    assert folder.pods() == ("b",)
    assert folder.new_reports() == ["a.json: not a regular file: put one here, or remove it"]


def test_a_too_large_file_is_reported_and_not_read(folder: Folder) -> None:
    with (folder.path / "a.json").open("wb") as stream:
        stream.truncate((512 << 20) + 1)
    assert folder.pods() == ()
    assert folder.new_reports() == ["a.json: the file is larger than 512 MiB: split it"]


BOMB = "\n".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))
HOSTILE = {
    "aliases of aliases": (f"spec:\n  a0: &a0 [x]\n{BOMB}", "expand to more than 1000000 values"),
    "an alias to itself": ("spec: &a [*a]", "alias *a has no anchor before it"),
    "levels": (f"spec: {'[' * 101}{']' * 101}", "more than 100 levels of nesting"),
    "levels without an end": (f"spec: {'{a: ' * 100_000}", "more than 100 levels of nesting"),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("spec", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_yaml_that_expands_without_limit_is_refused(folder: Folder, spec: str, reason: str) -> None:
    head = "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: x}\n"
    folder.write("a.yaml", head + spec)
    folder.write("b.json", pod("b"))
    assert folder.pods() == ("b",)
    (reported,) = folder.new_reports()
    assert reason in reported


def test_a_dangling_link_is_ignored(folder: Folder) -> None:
    (folder.path / "a.json").symlink_to(folder.path / "missing")
    assert folder.pods() == ()
    assert folder.new_reports() == []


def test_an_object_in_two_files_is_reported_and_the_later_file_is_used(folder: Folder) -> None:
    folder.write("a.json", pod("x", {"app": "first"}))
    folder.write("b.json", listed(pod("x", {"app": "second"}), pod("y")))
    assert folder.pods("app=second") == ("x",)
    assert folder.pods("app=first") == ()
    assert folder.new_reports() == ["b.json: Pod shop/x is also in a.json: the last definition is used"]
    (folder.path / "b.json").unlink()
    assert folder.pods("app=first") == ("x",)
    assert folder.new_reports() == []


WIDGET_DEFINITION = {
    "kind": "CustomResourceDefinition",
    "apiVersion": "apiextensions.k8s.io/v1",
    "metadata": {"name": "widgets.shop.example"},
    "spec": {
        "group": "shop.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1alpha1", "served": False}, {"name": "v1", "served": True}],
    },
}


@pytest.mark.parametrize("name", ["definition.json", "definition.yaml"])
def test_a_definition_in_the_folder_makes_its_kind_known(folder: Folder, name: str) -> None:
    widget = {"kind": "Widget", "apiVersion": "shop.example/v1", "metadata": {"name": "w", "namespace": "shop"}}
    folder.write("widgets.json", listed(widget))
    folder.source.refresh()
    reported = "objects of kind Widget in shop.example are left out (1): the kind is not known"
    assert folder.new_reports() == [f"widgets.json: {reported}, add its CustomResourceDefinition to the folder"]
    with pytest.raises(UnknownResourceError):
        folder.source.resource("", "widgets")
    folder.write(name, WIDGET_DEFINITION)
    folder.source.refresh()
    widgets = folder.source.resource("", "widget")
    assert widgets == Resource("shop.example", "v1", "widgets", "widget", "Widget", namespaced=True)
    assert folder.source.names(widgets, "shop", EVERYTHING) == ("w",)
    assert folder.new_reports() == []
    (folder.path / name).unlink()
    folder.source.refresh()
    assert not folder.source.is_synced(widgets)
    with pytest.raises(ObjectsNotServedError, match="neither built in nor defined"):
        folder.source.names(widgets, "shop", EVERYTHING)


def test_a_large_file_is_read_in_slices(tmp_path: Path) -> None:
    pauses: list[float] = []
    many = [pod(f"web-{number:05d}", {"app": f"app-{number % 500}"}) for number in range(10_000)]
    (tmp_path / "pods.json").write_text(json.dumps(listed(*many)))
    source = FileObjects(tmp_path, Pace(pause_seconds=0.001, sleep=pauses.append))
    source.refresh()
    assert len(pauses) > 100
    assert len(source.names(PODS, "shop", EVERYTHING)) == 10_000
    assert len(source.names(PODS, "shop", parse_selector("app=app-7"))) == 20
