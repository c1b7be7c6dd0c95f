"""A pod that runs as processes: its network, its volumes, its containers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane.kubelet.environment import Surroundings
from tests.e2e.controlplane.kubelet.names import hosts_of
from tests.e2e.controlplane.kubelet.payloads import Objects, Sources, Tokens, files_of
from tests.e2e.controlplane.kubelet.running import Place, RunningContainer, may_change_users
from tests.e2e.controlplane.kubelet.sandbox import Sandbox
from tests.e2e.controlplane.kubelet.spec import RefusedError, read_pod
from tests.e2e.controlplane.kubelet.volumes import make_empty, readable_by_group, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.e2e.controlplane.client import ApiClient, Document
    from tests.e2e.controlplane.kubelet.settings import Image, Settings
    from tests.e2e.controlplane.kubelet.status import ContainerState

# A kubelet looks each minute, and at once where it watches; a test's time is shorter.
_VOLUMES_SECONDS: Final = 1.0


class ProcessPod:
    """One pod; all methods are called from one thread, which lives as long as the pod."""

    def __init__(
        self,
        pod: Document,
        images: dict[str, Image],
        settings: Settings,
        client: ApiClient,
        number: int,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        """Make network and volumes; `number` is unique among the pods. Raises RefusedError, SandboxError."""
        self.pod = pod
        self._settings = settings
        self._client = client
        self._spec = read_pod(pod, images)
        self._folder = Path(settings.folder) / "pods" / pod["metadata"]["uid"]
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sources = self._new_sources(address := pod_address(number))
        self._fill_volumes()
        self._volumes_at = 0.0
        self._ending = False
        self._sandbox = Sandbox(number, address, self._folder / "sandbox.log")
        self.address = address
        self._containers = [
            RunningContainer(container, self._place(container.name), post) for container in self._spec.containers
        ]

    def advance(self, now: float, unix_now: float) -> None:
        """Do what is due. Raises RefusedError if a container cannot be made."""
        if now >= self._volumes_at:
            self._volumes_at = now + _VOLUMES_SECONDS
            self._fill_volumes()
        for container in self._containers:
            container.advance(now, unix_now, self._sources.around)

    def states(self) -> Sequence[ContainerState]:
        return [container.state() for container in self._containers]

    def end(self, now: float, grace: float) -> None:
        """Start to end all containers."""
        self._ending = True
        for container in self._containers:
            container.end(now, grace)

    @property
    def has_ended(self) -> bool:
        """Return whether the pod was told to end and nothing of it runs any more."""
        return self._ending and not any(container.is_running for container in self._containers)

    def close(self) -> None:
        """End what still runs and remove the network; volumes are removed, and logs are kept."""
        for container in self._containers:
            container.kill()
        self._sandbox.stop()
        shutil.rmtree(self._folder / "volumes", ignore_errors=True)

    def _place(self, name: str) -> Place:
        return Place(self._folder / name, self._folder / "volumes", self._sandbox.pid, self.address)

    def _new_sources(self, address: str) -> Sources:
        namespace = self.pod["metadata"]["namespace"]
        objects = Objects(self._client, namespace)
        links = self._spec.service_links
        around = Surroundings(
            pod=self.pod,
            pod_address=address,
            node_address=self._settings.address,
            api_host=self._settings.api_host,
            api_port=self._settings.api_port,
            services=self._client.items(f"/api/v1/namespaces/{namespace}/services") if links else [],
            config_map=objects.config_map,
            secret=objects.secret,
            hosts=lambda: hosts_of(self._client),
        )
        return Sources(objects, Tokens(self._client, self.pod), around)

    def _fill_volumes(self) -> None:
        group = self._spec.fs_group if may_change_users() else None
        for volume in self._spec.volumes:
            folder = self._folder / "volumes" / volume["name"]
            try:
                files = files_of(volume, self._sources)
            except RefusedError:
                # As a kubelet does: what was mounted once stays as it was when its object goes.
                if not folder.exists():
                    raise
                continue
            if files is not None:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(folder, files if group is None else readable_by_group(files), group)
            elif not folder.exists():
                make_empty(folder, group)


def pod_address(number: int) -> str:
    """Return the address of the pod of this number, from 10.99.1.1 on."""
    return f"10.99.{1 + number // 250}.{1 + number % 250}"
