"""Volumes and environments of pods that run are those of a real node."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.controlplane import kernel
from tests.e2e.controlplane.kubelet.container import show
from tests.e2e.controlplane.kubelet.environment import Surroundings, compose, expanded, field
from tests.e2e.controlplane.kubelet.settings import Image
from tests.e2e.controlplane.kubelet.spec import Container, RefusedError, read_pod
from tests.e2e.controlplane.kubelet.volumes import File, make_empty, write_atomically

POD: dict[str, Any] = {
    "metadata": {"name": "web-0", "namespace": "shop", "uid": "u-1", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "serviceAccountName": "web"},
}
OBJECTS = {"settings": {"colour": "green", "shape": "round"}}
SERVICE = {
    "metadata": {"name": "tide-watch"},
    "spec": {"clusterIP": "10.96.0.9", "ports": [{"name": "https", "port": 443}]},
}
AROUND = Surroundings(
    pod=POD,
    pod_address="10.99.1.1",
    node_address="10.99.0.1",
    api_host="10.96.0.1",
    api_port=443,
    services=[],
    config_map=OBJECTS.get,
    secret={"keys": {"token": "t"}}.get,
    hosts=lambda: "",
)


def container(**fields: object) -> Container:
    main = {"name": "main", "image": "i", "securityContext": {"readOnlyRootFilesystem": True}, **fields}
    (found,) = read_pod({"spec": {"containers": [main]}}, {"main": Image(environment={"PATH": "/bin"})}).containers
    return found


def test_an_update_changes_all_files_at_once_and_no_open_file(tmp_path: Path) -> None:
    assert write_atomically(tmp_path, {"a": File(b"1", 0o644), "b": File(b"1", 0o644)})
    with (tmp_path / "a").open() as opened:
        before = (tmp_path / "..data").readlink()
        assert write_atomically(tmp_path, {"a": File(b"2", 0o600), "c/d": File(b"2", 0o644)})
        assert opened.read() == "1"
    assert (tmp_path / "..data").readlink() != before
    assert (tmp_path / "a").is_symlink()
    assert [(tmp_path / name).read_text() for name in ("a", "c/d")] == ["2", "2"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "b").is_symlink()


def test_unchanged_files_are_not_written_again(tmp_path: Path) -> None:
    files = {"a": File(b"1", 0o644)}
    assert write_atomically(tmp_path, files)
    before = (tmp_path / "..data").readlink()
    assert not write_atomically(tmp_path, files)
    assert (tmp_path / "..data").readlink() == before


def test_every_user_may_write_to_an_empty_dir(tmp_path: Path) -> None:
    make_empty(tmp_path / "scratch", None)
    assert (tmp_path / "scratch").stat().st_mode & 0o777 == 0o777


@pytest.mark.parametrize(
    ("text", "result"),
    [("$(A)-$(B)", "1-$(B)"), ("$$(A)", "$(A)"), ("$A", "$A"), ("$$$(A)", "$1"), ("$(", "$(")],
)
def test_references_expand_as_kubernetes_expands_them(text: str, result: str) -> None:
    assert expanded(text, {"A": "1"}) == result


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-0"),
        ("metadata.labels['app']", "web"),
        ("metadata.annotations['none']", ""),
        ("status.podIP", "10.99.1.1"),
        ("spec.nodeName", "n1"),
    ],
)
def test_a_field_reference_is_a_field_of_the_pod(path: str, value: str) -> None:
    assert field(path, AROUND) == value


def test_later_entries_see_earlier_ones_and_win() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(colour)"}, {"name": "shape", "value": "flat"}]
    found = compose(container(env=env, envFrom=[{"configMapRef": {"name": "settings"}}]), AROUND)
    assert (found["B"], found["shape"], found["PATH"]) == ("1green", "flat", "/bin")


def test_each_service_of_the_namespace_adds_its_links() -> None:
    found = compose(container(), replace(AROUND, services=[SERVICE]))
    assert found["TIDE_WATCH_SERVICE_HOST"] == "10.96.0.9"
    assert found["TIDE_WATCH_SERVICE_PORT_HTTPS"] == found["TIDE_WATCH_SERVICE_PORT"] == "443"
    assert found["TIDE_WATCH_PORT"] == found["TIDE_WATCH_PORT_443_TCP"] == "tcp://10.96.0.9:443"
    assert found["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"


def test_a_missing_key_is_an_error_unless_it_is_optional() -> None:
    source = {"name": "keys", "key": "none"}
    entry = {"name": "TOKEN", "valueFrom": {"secretKeyRef": source}}
    with pytest.raises(RefusedError, match="secretKeyRef keys has no key none"):
        compose(container(env=[entry]), AROUND)
    optional = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {**source, "optional": True}}}
    assert "TOKEN" not in compose(container(env=[optional]), AROUND)


def test_a_file_that_disappears_after_the_listing_does_not_prevent_the_start_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bind(source: str, _target: str, **_: object) -> None:
        Path(source).stat()

    monkeypatch.setattr(kernel, "mount", bind)
    folder, root = tmp_path / "machine", tmp_path / "container"
    (folder / "folder").mkdir(parents=True)
    (folder / "file").touch()
    (folder / "link").symlink_to("file")
    entries = list(os.scandir(folder))
    shutil.rmtree(folder)
    root.mkdir()
    for entry in entries:
        show(entry, root / entry.name)
    assert not (root / "link").exists()
