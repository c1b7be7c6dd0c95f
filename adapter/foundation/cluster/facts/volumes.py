"""Turns volumes and ports of a pod's spec into their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.pod_constraints import decode_part
from adapter.foundation.cluster.forms.scheduling_pods import DiskForm, PortedContainerForm, VolumeForm
from adapter.foundation.cluster.values.constraints import HostPort, LocalVolume
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache

_SHARED_BYTES: Final = 8 * MEBIBYTE
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - the address of a port, nothing listens there
_PROTOCOLS: Final = frozenset({"TCP", "UDP", "SCTP"})
_LARGEST_PORT: Final = 65535

_TOKEN_VOLUME: Final = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')


class PodVolumes(NamedTuple):
    """The requirements of a pod's volumes."""

    claims: tuple[str, ...] = ()
    ephemeral: tuple[str, ...] = ()
    """Names of the volumes whose claims are made with the pod."""
    inline: tuple[str, ...] = ()
    local: tuple[tuple[str, LocalVolume], ...] = ()


def shared_volumes(raw: bytes) -> bytes:
    """Return the bytes of `spec.volumes` in a form that is the same for all pods of a controller.

    The API server gives the volume of each pod's token a random name.
    """
    return _TOKEN_VOLUME.sub(b'"kube-api-access"', raw)


@bounded_cache(_SHARED_BYTES)
def volumes_of(raw: bytes) -> PodVolumes:
    """Return what the volumes require. Raises FactError."""
    forms = decode_part("spec.volumes", raw, list[VolumeForm]) or []
    claims = [_claim(form) for form in forms if form.persistent_volume_claim is not None]
    return PodVolumes(
        claims=tuple(dict.fromkeys(claims)),
        ephemeral=tuple(form.name for form in forms if form.ephemeral is not None),
        inline=tuple(dict.fromkeys(disk for form in forms for disk in _disks(form))),
        local=tuple(local for form in forms for local in _local(form)),
    )


def host_ports_of(containers: Iterable[PortedContainerForm], *, host_network: bool) -> tuple[HostPort, ...]:
    """Return the host ports that the containers occupy, sorted. Raises FactError."""
    found = set()
    for container in containers:
        for port in container.ports or ():
            number = port.host_port or (port.container_port if host_network else 0)
            if number == 0:
                continue
            where = f"spec.containers[{container.name}].ports"
            protocol = port.protocol or "TCP"
            if protocol not in _PROTOCOLS:
                raise FactError(f"{where}: the protocol {protocol!r} is not known: use TCP, UDP or SCTP")
            if not 0 < number <= _LARGEST_PORT:
                raise FactError(f"{where}: {number} is not a port: write 1 to {_LARGEST_PORT}")
            found.add(HostPort(protocol, port.host_ip or _ANY_ADDRESS, number))
    return tuple(sorted(found))


def _claim(form: VolumeForm) -> str:
    name = form.persistent_volume_claim.claim_name if form.persistent_volume_claim else ""
    if not name:
        raise FactError(f"spec.volumes[{form.name}].persistentVolumeClaim: claimName is missing")
    return name


def _disks(form: VolumeForm) -> Iterator[str]:
    """Yield each disk as the VolumeRestrictions filter compares it; that filter never lets pods share an EBS volume."""
    if (disk := form.aws_elastic_block_store) is not None:
        yield f"awsElasticBlockStore/{disk.volume_id}"
    if (disk := form.gce_persistent_disk) is not None:
        yield f"gcePersistentDisk/{disk.pd_name}{_mode(disk)}"
    if (disk := form.iscsi) is not None:
        yield f"iscsi/{disk.iqn}{_mode(disk)}"
    if (disk := form.rbd) is not None:
        for monitor in disk.monitors or ():
            yield f"rbd/{monitor}/{disk.pool or 'rbd'}/{disk.image}{_mode(disk)}"


def _mode(disk: DiskForm) -> str:
    return ":ro" if disk.read_only else ""


def _local(form: VolumeForm) -> Iterator[tuple[str, LocalVolume]]:
    if form.host_path is not None:
        yield form.name, LocalVolume.HOST_PATH
    if form.empty_dir is not None and form.empty_dir.medium != "Memory":
        yield form.name, LocalVolume.EMPTY_DIR
