"""The settings of the stand-in, passed from the cluster's fixture to its process as a JSON file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """The stand-in for a container image: programs of this machine."""

    entrypoint: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    user: int = 0
    group: int = 0
    working_folder: str = "/"
    files: tuple[str, ...] = ()
    """Folders that the programs need and that no volume may hide: on this machine they may be in /tmp."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the stand-in for one node."""

    url: str
    ca_file: str
    certificate_file: str
    key_file: str
    folder: str
    """The folder for volumes and logs."""
    node: str = "e2e-node"
    address: str
    api_host: str
    """The value of KUBERNETES_SERVICE_HOST in pods."""
    api_port: int
    runs_pods: bool
    """Whether pods of `images` run as processes; otherwise these pods are refused."""
    images: dict[str, Image] = {}
    """Images by repository, without registry and tag, for example `tidewatch`."""
    takes_unscheduled_pods: bool = True
    start_up_seconds: float = 1.0


def read(path: Path) -> Settings:
    """Return the settings in a file."""
    return msgspec.json.decode(path.read_bytes(), type=Settings)


def image_of(settings: Settings, reference: str) -> Image | None:
    """Return the stand-in for an image reference, or None for images that are not run."""
    name = reference.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return settings.images.get(name)
