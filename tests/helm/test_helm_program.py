"""`.ci/helm` looks for an installed program before it builds one."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

PINNED = re.search(r"^\thelm\.sh/helm/v3 (v\S+)", (CHECKOUT / "tests/helm/go/go.mod").read_text(), flags=re.MULTILINE)


def program(folder: Path, version: str) -> Path:
    """Write a program `helm` that reports this version."""
    folder.mkdir(parents=True)
    (folder / "helm").write_text(f"#!/bin/sh\necho {version}\n")
    (folder / "helm").chmod(0o755)
    return folder / "helm"


def found(cache: Path, path: str = "", binary: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script where there is no Go, so that nothing can be built."""
    environ = {"PATH": f"{path}:/usr/bin:/bin", "XDG_CACHE_HOME": str(cache), "GO": "/nowhere/go", "HOME": os.devnull}
    environ |= {"HELM_BINARY": binary} if binary else {}
    command = ["/bin/bash", str(CHECKOUT / ".ci" / "helm")]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def version() -> str:
    assert PINNED
    return PINNED[1]


def test_a_helm_of_the_pinned_version_on_the_path_is_used(tmp_path: Path, version: str) -> None:
    helm = program(tmp_path / "bin", version)
    assert found(tmp_path, path=str(helm.parent)).stdout == f"{helm.parent}\n"


def test_a_helm_of_another_version_on_the_path_is_not_used(tmp_path: Path, version: str) -> None:
    other = program(tmp_path / "bin", "v2.0.0")
    kept = program(tmp_path / "tidewatch" / "helm" / version, version)
    assert found(tmp_path, path=str(other.parent)).stdout == f"{kept.parent}\n"


def test_a_named_helm_is_used_whatever_its_version(tmp_path: Path) -> None:
    helm = program(tmp_path / "mine", "v3.1.0")
    assert found(tmp_path, binary=str(helm)).stdout == f"{helm.parent}\n"


def test_a_named_helm_that_is_not_helm_is_an_error(tmp_path: Path) -> None:
    told = found(tmp_path, binary="/nowhere/helm")
    assert (told.returncode, told.stdout) == (1, "")
    assert "HELM_BINARY=/nowhere/helm is not a program" in told.stderr


def test_without_go_nothing_is_built_and_nothing_is_left(tmp_path: Path) -> None:
    told = found(tmp_path)
    assert (told.returncode, told.stdout) == (1, "")
    assert "GO=/nowhere/go is not a program" in told.stderr
    assert list(tmp_path.rglob("*")) == []
