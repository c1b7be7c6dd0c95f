"""The stand-in as a process: `python -m tests.e2e.controlplane.kubelet SETTINGS`."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from tests.e2e.controlplane.client import ApiClient, Credentials
from tests.e2e.controlplane.kubelet.loop import Kubelet
from tests.e2e.controlplane.kubelet.node import register
from tests.e2e.controlplane.kubelet.settings import read
from tests.e2e.controlplane.kubelet.watching import PodWatch


def main() -> None:
    """Be the node until SIGTERM; then end all pods' processes."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    settings = read(Path(sys.argv[1]))
    client = ApiClient(
        settings.url,
        Path(settings.ca_file),
        Credentials(Path(settings.certificate_file), Path(settings.key_file)),
    )
    register(client, settings.node, settings.address)
    kubelet = Kubelet(settings, client)
    watch = PodWatch(
        client,
        lambda pod: kubelet.post(lambda: kubelet.changed(pod)),
        lambda uid: kubelet.post(lambda: kubelet.gone(uid)),
    )
    watch.start()
    try:
        kubelet.run(ended.is_set)
    finally:
        kubelet.close()


if __name__ == "__main__":
    main()
