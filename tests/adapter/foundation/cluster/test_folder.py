"""The facts of a folder that is followed while a process runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.files.folder import ClusterFolder
from adapter.foundation.cluster.files.reading import ClusterFilesError
from adapter.foundation.cluster.values.state import (
    ClusterNeeds,
    ClusterState,
    CountQuery,
    ObjectKind,
    Observed,
    Unknown,
)
from recommender.decisions.record import TargetReference
from tests.adapter.foundation.cluster.test_files import NEEDS, OBJECTS, read, written
from tests.support.cluster_objects import node_object, plain_object, pod_object

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cluster_objects import Json

ALL_NODES = ClusterNeeds(nodes=True)
WEB = TargetReference("apps/v1", "Deployment", "shop", "web")


class Folder(ClusterFolder):
    """A folder that counts changes, keeps reports, and has a clock that each refresh advances."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reports: list[str] = []
        self.changes = 0
        self.now = 0.0
        super().__init__(path, report=self.reports.append, changed=self.count, wall_clock=lambda: self.now)

    def count(self) -> None:
        self.changes += 1

    def check(self) -> None:
        self.now += 1.0
        self.refresh()

    def write(self, name: str, *objects: Json) -> None:
        written(self.path / f"new-{name}", *objects).rename(self.path / name)

    @property
    def names(self) -> list[str]:
        nodes = self.state(ALL_NODES).nodes
        assert isinstance(nodes, Observed)
        assert nodes.time == self.now
        return [node.name for node in nodes.value]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_followed_folder_gives_the_same_state_as_a_single_read(folder: Folder) -> None:
    folder.write("all.json", *OBJECTS)
    folder.now = 1795327200.0 - 1.0
    folder.check()
    assert folder.state(NEEDS) == read(folder.path)
    assert folder.state(ClusterNeeds()) == ClusterState()


def test_nothing_is_known_before_the_first_refresh(folder: Folder) -> None:
    reason = Unknown(f"the files in {folder.path} have not been read yet")
    needs = ClusterNeeds(nodes=True, autoscaler_namespaces=frozenset({"a"}), counts=frozenset({CountQuery("pods")}))
    assert folder.state(needs) == ClusterState(reason, {"a": reason}, {CountQuery("pods"): reason})
    assert folder.target(WEB) == reason


def test_added_changed_and_removed_files_are_followed(folder: Folder) -> None:
    folder.write("a.json", node_object("a"))
    folder.check()
    assert (folder.names, folder.changes) == (["a"], 1)
    folder.check()
    assert (folder.names, folder.changes) == (["a"], 1)
    folder.write("b.yaml", node_object("b"))
    folder.check()
    assert (folder.names, folder.changes) == (["a", "b"], 2)
    folder.write("a.json", node_object("c"))
    folder.check()
    assert (folder.names, folder.changes) == (["b", "c"], 3)
    (folder.path / "b.yaml").unlink()
    folder.check()
    assert (folder.names, folder.changes, folder.reports) == (["c"], 4, [])


def test_a_broken_file_is_reported_and_its_last_good_content_stays_in_use(folder: Folder) -> None:
    folder.write("a.json", node_object("a"))
    folder.write("b.json", node_object("b"))
    folder.check()
    (folder.path / "a.json").write_text("{")
    folder.check()
    folder.check()
    assert folder.names == ["a", "b"]
    problems = folder.state(ALL_NODES).problems
    assert len(problems) == len(folder.reports) == 1
    assert problems[0] == f"{folder.reports[0]}: its last good content stays in use"
    assert folder.reports[0].startswith(f"{folder.path / 'a.json'}: ")
    folder.write("a.json", node_object("c"))
    folder.check()
    assert (folder.names, folder.state(ALL_NODES).problems) == (["b", "c"], ())


def test_a_file_that_is_broken_from_the_start_does_not_affect_others(folder: Folder) -> None:
    (folder.path / "a.yaml").write_text("a: [")
    folder.write("b.json", node_object("b"))
    folder.check()
    assert (folder.names, len(folder.reports)) == (["b"], 1)
    assert folder.state(ALL_NODES).problems == (f"{folder.reports[0]}: none of its objects are used",)


def test_an_emptied_folder_keeps_its_facts_with_their_old_time(folder: Folder) -> None:
    folder.write("a.json", node_object("a"))
    folder.check()
    (folder.path / "a.json").unlink()
    with pytest.raises(ClusterFilesError, match="there is no"):
        folder.check()
    nodes = folder.state(ALL_NODES).nodes
    assert isinstance(nodes, Observed)
    assert (len(nodes.value), nodes.time, folder.now) == (1, 1.0, 2.0)


def test_targets_are_found(folder: Folder) -> None:
    metadata = {"name": "web", "namespace": "shop"}
    folder.write(
        "a.json", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 4}}
    )
    folder.write("b.json", {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {}})
    folder.write("c.json", plain_object("Pod", "web-1", "shop"))
    folder.check()
    found = folder.target(WEB)
    assert isinstance(found, Observed)
    assert found.value is not None
    assert found.value.replicas == 4
    assert folder.target(TargetReference("apps/v1", "DaemonSet", "shop", "web")) == Unknown(
        "DaemonSet web has no spec.replicas: name an object that can be scaled"
    )
    assert folder.target(TargetReference("apps/v1", "StatefulSet", "shop", "web")) == Observed(None, 1.0)


def test_files_are_read_again_for_new_needs_which_are_unknown_until_then(folder: Folder) -> None:
    folder.write("all.json", node_object("n1"), pod_object("a", node="n1"))
    folder.check()
    machines = ObjectKind("cluster.x-k8s.io", "machinedeployments", "MachineDeployment")
    needs = ClusterNeeds(nodes=True, pods=True, scheduling=True, objects=frozenset({machines}))

    folder.change(needs)
    before = folder.state(needs)
    unread = Unknown(f"the files in {folder.path} have not been read for this yet")
    assert isinstance(before.nodes, Observed)
    assert (before.pods, before.workloads, before.objects) == (unread, unread, {machines: unread})

    folder.check()
    after = folder.state(folder.needs)
    assert isinstance(after.pods, Observed)
    assert [pod.name for pod in after.pods.value] == ["a"]
    assert isinstance(after.workloads, Observed)
    assert "contains no MachineDeployment" in str(after.objects[machines])
    assert folder.changes == 2
