"""The programs that the suite runs; each pinned version matches its folder's name."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING

import pytest

from tests.e2e.controlplane.building import build
from tests.e2e.controlplane.programs import (
    CONTROL_PLANE,
    PINNED,
    PROMETHEUS,
    THANOS,
    Module,
    ProgramsError,
    cache_folder,
    control_plane,
    find,
    kubernetes,
)

if TYPE_CHECKING:
    from pathlib import Path

GO = """#!/bin/sh
case "$1" in
env) echo go1.26.0; exit ;;
esac
echo call >> "$CALLS"
echo some/package >&2
for last; do [ "$before" = -o ] && out=$last; before=$last; done
[ -z "$FAIL" ] || { echo "no such module" >&2; exit 1; }
printf '#!/bin/sh\\n' > "$out"; chmod +x "$out"
"""


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return an environment with a cache for this test alone, and a fake `go`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "go").write_text(GO)
    (programs / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    calls = str(tmp_path / "calls")
    return {"PATH": f"{programs}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache"), "CALLS": calls}


def calls(environ: dict[str, str]) -> int:
    with open(environ["CALLS"]) as lines:  # noqa: PTH123 - a name out of an environment
        return len(lines.readlines())


@pytest.mark.parametrize("folder", sorted(PINNED.glob("kubernetes-*")), ids=lambda folder: folder.name)
def test_a_folder_holds_the_version_that_it_is_named_after(folder: Path) -> None:
    minor = folder.name.removeprefix("kubernetes-")
    assert kubernetes(minor).version.startswith(f"v{minor}.")
    replaced = [line for line in (folder / "go.mod").read_text().splitlines() if "=>" in line]
    assert len(replaced) > 20
    assert all(line.endswith(f" v0.{kubernetes(minor).version.removeprefix('v1.')}") for line in replaced)


def test_a_version_that_is_not_pinned_is_refused_with_those_that_are() -> None:
    with pytest.raises(ProgramsError, match=r"1\.7 is not among the pinned versions: take one of 1\.\d+"):
        kubernetes("1.7")


def test_programs_are_built_once(environ: dict[str, str]) -> None:
    folder = build(kubernetes(), environ, io.StringIO())
    assert sorted(path.name for path in folder.iterdir()) == sorted(CONTROL_PLANE)
    assert build(kubernetes(), environ, io.StringIO()) == folder
    assert calls(environ) == len(CONTROL_PLANE)
    assert control_plane(environ=environ)["etcd"] == str(folder / "etcd")


def test_two_concurrent_builds_build_once(environ: dict[str, str]) -> None:
    others = [threading.Thread(target=build, args=(PROMETHEUS, environ, io.StringIO())) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert calls(environ) == len(PROMETHEUS.packages)


def test_a_failed_build_says_why_and_leaves_nothing(environ: dict[str, str]) -> None:
    with pytest.raises(ProgramsError, match=r"(?s)prometheus of prometheus-3 .* could not be built.*no such module"):
        build(PROMETHEUS, {**environ, "FAIL": "1"}, io.StringIO())
    assert [path.suffix for path in cache_folder(environ).iterdir()] == [".lock"]


def test_missing_programs_are_named_with_the_way_to_get_them(environ: dict[str, str]) -> None:
    with pytest.raises(ProgramsError, match="run `make e2e`"):
        control_plane(environ=environ)
    with pytest.raises(ProgramsError, match="run `make e2e thanos=1`"):
        find(THANOS, environ)


def test_kubebuilder_assets_go_before_what_was_built(environ: dict[str, str], tmp_path: Path) -> None:
    folder = build(kubernetes(), environ, io.StringIO())
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "etcd").write_bytes((folder / "etcd").read_bytes())
    (assets / "etcd").chmod(0o755)
    programs = control_plane(environ={**environ, "KUBEBUILDER_ASSETS": str(assets)})
    assert programs["etcd"] == str(assets / "etcd")
    assert programs["kubectl"] == str(folder / "kubectl")


def test_kubebuilder_assets_that_lack_a_program_are_refused(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ProgramsError, match="has no kube-apiserver"):
        control_plane(environ={**environ, "KUBEBUILDER_ASSETS": str(tmp_path)})


def test_the_key_of_a_build_follows_its_flags() -> None:
    flagless = Module(PROMETHEUS.name, PROMETHEUS.versioned, PROMETHEUS.packages)
    assert flagless.key != PROMETHEUS.key
