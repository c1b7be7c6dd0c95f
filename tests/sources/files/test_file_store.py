"""Whole objects of files: which are given, what is wrong with the others, and what a change of a file does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from adapter.objects.resources import BUILT_IN, find_resource
from adapter.objects.selectors import parse_selector
from adapter.sources.file_store import LOOKS_UNTIL_SETTLED, FileStore, read_object_files
from adapter.sources.objects import ObjectsError

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.sources.manifest_files import FileProblem
    from adapter.sources.whole_objects import ObjectForms


class Meta(msgspec.Struct):
    name: str
    namespace: str | None = None


class NodeSpec(msgspec.Struct):
    unschedulable: bool = False


class Node(msgspec.Struct):
    metadata: Meta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)


class Service(msgspec.Struct):
    metadata: Meta


FORMS: ObjectForms = {
    Node: find_resource(BUILT_IN, "", "nodes"),
    Service: find_resource(BUILT_IN, "", "services"),
}


def node(name: str, labels: str = "{}", unschedulable: str = "no") -> str:
    return f"""\
---
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {labels}}}
spec: {{unschedulable: {unschedulable}}}
"""


def service(name: str, namespace: str) -> str:
    return f"---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {namespace}}}\n"


class Folder:
    """A folder with a store that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[FileProblem] = []
        self.store = FileStore(path, FORMS, report=self.problems.append)

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def nodes(self) -> list[str]:
        for _ in range(LOOKS_UNTIL_SETTLED):
            self.store.check()
        return [found.metadata.name for found in self.store.current.objects(Node)]

    def reported(self) -> list[str]:
        """Return the problems since the last call, without the folder's path."""
        reported = [str(problem).replace(f"{self.path}/", "") for problem in self.problems]
        self.problems.clear()
        return reported


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize(
    ("namespace", "selector", "services"),
    [(None, "", ["shop/a", "shop/b", "test/a"]), ("shop", "", ["shop/a", "shop/b"]), ("none", "", [])],
)
def test_objects_are_given_by_namespace_and_in_order(
    tmp_path: Path, namespace: str | None, selector: str, services: list[str]
) -> None:
    (tmp_path / "1.yaml").write_text(service("b", "shop") + node("n1"))
    (tmp_path / "2.yaml").write_text(service("a", "test") + service("a", "shop"))
    found = read_object_files(tmp_path, FORMS).objects(Service, namespace, parse_selector(selector))
    assert [f"{one.metadata.namespace}/{one.metadata.name}" for one in found] == services


def test_objects_are_given_by_their_labels_though_the_struct_has_none(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(node("n1", "{pool: a}") + node("n2", "{pool: b}") + node("n3"))
    files = read_object_files(tmp_path / "nodes.yaml", FORMS)
    assert [one.metadata.name for one in files.objects(Node, selector=parse_selector("pool in (a, b)"))] == ["n1", "n2"]


def test_a_bad_object_is_left_out_and_reported_with_file_and_line(folder: Folder) -> None:
    folder.write("nodes.yaml", node("n1") + node("n2", unschedulable="3") + node("n3"))
    assert folder.nodes() == ["n1", "n3"]
    assert folder.reported() == ["nodes.yaml:7: Node n2: Expected `bool`, got `int` - at `$.spec.unschedulable`"]
    folder.write("other.yaml", service("a", "shop"))
    assert folder.nodes() == ["n1", "n3"]
    assert len(folder.store.current.problems) == 1
    assert folder.reported() == []
    folder.write("nodes.yaml", node("n1") + node("n2"))
    assert folder.nodes() == ["n1", "n2"]
    assert not folder.store.current.problems


@pytest.mark.parametrize(
    ("name", "broken", "problem"),
    [
        ("a.yaml", "metadata: [", "a.yaml:2: not YAML: "),
        ("a.json", '{"items": [', "a.json"),
        ("a.yaml", "", "a.yaml: the file is empty: "),
    ],
    ids=["YAML", "JSON", "empty"],
)
def test_a_file_that_cannot_be_read_keeps_its_last_good_objects(
    folder: Folder, name: str, broken: str, problem: str
) -> None:
    good = node("n1") if name.endswith("yaml") else '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}'
    folder.write(name, good)
    folder.write("b.yaml", node("n2"))
    assert folder.nodes() == ["n1", "n2"]
    folder.write(name, broken)
    folder.write("b.yaml", node("n3"))
    assert folder.nodes() == ["n1", "n3"]
    (reported,) = folder.reported()
    assert reported.startswith(problem)
    (folder.path / name).unlink()
    assert folder.nodes() == ["n3"]
    assert not folder.store.current.problems


def test_a_file_that_is_broken_at_the_start_gives_nothing_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("metadata: [")
    (tmp_path / "b.yaml").write_text(node("n2"))
    folder = Folder(tmp_path)
    assert len(folder.reported()) == 1
    assert folder.nodes() == ["n2"]


def test_a_change_that_is_still_being_written_is_left_alone(folder: Folder) -> None:
    folder.write("a.yaml", node("n1") + node("n2"))
    assert folder.nodes() == ["n1", "n2"]
    folder.write("a.yaml", node("n1"))
    folder.store.check()
    folder.write("a.yaml", node("n1") + node("n2") + node("n3"))
    folder.store.check()
    assert len(folder.store.current.objects(Node)) == 2
    folder.store.check()
    assert len(folder.store.current.objects(Node)) == 3


def test_of_an_object_that_two_files_define_the_last_definition_counts(folder: Folder) -> None:
    folder.write("a.yaml", node("n1", unschedulable="yes"))
    folder.write("b.yaml", node("n1"))
    assert folder.nodes() == ["n1"]
    assert folder.store.current.objects(Node) == (Node(Meta("n1")),)
    assert folder.reported() == ["b.yaml:2: Node n1 is also in a.yaml: the last definition counts"]


def test_a_folder_that_is_gone_keeps_all_objects_and_at_the_start_there_must_be_one(folder: Folder) -> None:
    folder.write("a.yaml", node("n1"))
    assert folder.nodes() == ["n1"]
    away = folder.path.rename(folder.path.with_name("away"))
    assert folder.nodes() == ["n1"]
    (reported,) = folder.reported()
    assert "the last objects stay in use" in reported
    with pytest.raises(ObjectsError, match="No such file or directory"):
        FileStore(folder.path, FORMS)
    away.rename(folder.path)
    assert folder.nodes() == ["n1"]
