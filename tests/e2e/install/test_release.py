"""The files of `make release` are complete, hold no secrets, and are enough without the checkout and Helm."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tomllib
import zipfile
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from tests.e2e.support.installed import APIS
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

pytestmark = pytest.mark.timeout(400)

VERSION: Final[str] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
NAMESPACE: Final = "tidewatch"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [CHECKOUT / ".ci" / "release", folder], cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def documents(path: Path) -> list[Document]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def test_every_file_has_its_checksum(archive: Path) -> None:
    lines = [line.split("  ") for line in (archive / "SHA256SUMS").read_text().splitlines()]
    sums = {name: checksum for checksum, name in lines}
    made = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archive.iterdir()}
    del made["SHA256SUMS"]
    assert sums == made
    assert {f"tidewatch-{VERSION}-py3-none-any.whl", f"tidewatch-{VERSION}.tar.gz", "install.yaml"} <= set(made)


def test_the_wheel_contains_both_programs_and_no_other_importable_package(archive: Path) -> None:
    names = zipfile.ZipFile(archive / f"tidewatch-{VERSION}-py3-none-any.whl").namelist()
    parts = {name.partition("/")[0] for name in names}
    assert parts == {"adapter", "recommender", f"tidewatch-{VERSION}.dist-info", f"tidewatch-{VERSION}.data"}


def test_published_manifests_contain_no_secret(archive: Path) -> None:
    secrets = [each for each in documents(archive / "install.yaml") if each["kind"] == "Secret"]
    assert [each.get("data") or each.get("stringData") for each in secrets] == [None] * len(secrets)
    assert "PRIVATE KEY" not in (archive / "install.yaml").read_text()


def test_the_bill_of_materials_lists_what_the_lock_installs(archive: Path) -> None:
    bill = json.loads((archive / f"tidewatch-{VERSION}.cdx.json").read_text())
    lock = (archive / f"tidewatch-{VERSION}-requirements.lock").read_text()
    pinned = {line.split("==")[0] for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#"))}
    assert {each["name"] for each in bill["components"]} == pinned


def test_the_provenance_names_the_values_of_the_chart(archive: Path) -> None:
    provenance = json.loads((archive / "provenance.json").read_text())
    values = (CHECKOUT / "helm" / "tidewatch" / "values.yaml").read_bytes()
    assert provenance["version"] == VERSION
    assert provenance["inputs"]["helm/tidewatch/values.yaml"] == hashlib.sha256(values).hexdigest()


@pytest.fixture
def applied(cluster: Cluster, archive: Path) -> Iterator[None]:
    """Apply both manifests of the archive alone, and delete their objects afterwards."""
    cluster.kubectl("apply", "--server-side", "-f", str(archive / "crds.yaml"))
    cluster.kubectl("apply", "--server-side", "-k", str(archive))
    try:
        yield
    finally:
        cluster.kubectl("delete", "--wait=false", "-k", str(archive))
        cluster.kubectl("delete", "-f", str(archive / "crds.yaml"))


@pytest.mark.needs_pods
@pytest.mark.usefixtures("applied")
def test_a_cluster_has_the_apis_and_the_kinds_from_the_archive_alone(cluster: Cluster) -> None:
    cluster.wait_until_ready(NAMESPACE, "tidewatch-adapter")

    def served() -> bool:
        for name in APIS:
            version, _, group = name.partition(".")
            cluster.client.get(f"/apis/{group}/{version}")
        return True

    cluster.wait_for("answers of all APIs through the aggregator", served)
    kinds = cluster.kubectl("api-resources", "--api-group=tidewatch.io", "-o", "name").split()
    assert sorted(kinds) == ["metricrules.tidewatch.io", "recommendations.tidewatch.io"]
    # A kind that was never listed is deleted late: the API server's finalizer lists it, is refused while the storage is
    # initialized ("storage is (re)initializing"), and doubles its wait.
    cluster.kubectl("get", ",".join(kinds), "--all-namespaces")
