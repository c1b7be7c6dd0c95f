"""The stand-in as a process: `python -m tests.e2e.controlplane.kubelet SETTINGS`."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane.client import ApiClient, Credentials
from tests.e2e.controlplane.kubelet.loop import Kubelet
from tests.e2e.controlplane.kubelet.settings import read
from tests.e2e.controlplane.kubelet.watching import Watch
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.controlplane.client import Document

PODS: Final = "/api/v1/pods"
_CAPACITY: Final = {"cpu": "1000", "memory": "4000Gi", "pods": "60000", "ephemeral-storage": "4000Gi"}


def main() -> None:
    """Act as the kubelet of all nodes until SIGTERM; then end all pods' processes."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    settings = read(Path(sys.argv[1]))
    client = ApiClient(
        settings.url,
        Path(settings.ca_file),
        Credentials(Path(settings.certificate_file), Path(settings.key_file)),
    )
    register(client, NodeSpec(settings.node, _CAPACITY, address=settings.address))
    kubelet = Kubelet(settings, client)

    def follow(path: str, changed: Callable[[Document], None], gone: Callable[[str], None]) -> None:
        Watch(
            client,
            path,
            lambda found: kubelet.post(lambda: changed(found)),
            lambda uid: kubelet.post(lambda: gone(uid)),
        ).start()

    follow(NODES, kubelet.node_changed, kubelet.node_gone)
    follow(PODS, kubelet.changed, kubelet.gone)
    try:
        kubelet.run(ended.is_set)
    finally:
        kubelet.close()


if __name__ == "__main__":
    main()
