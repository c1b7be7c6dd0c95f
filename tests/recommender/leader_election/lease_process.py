"""An elector in its own process, for tests that stop it. Arguments: kubeconfig, identity, journal, timing.

The journal gets a line for each time that it may lead: `claim FROM UNTIL`, in seconds of the machine's clock.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.leader_election.elector import LeaseElector, since_boot
from recommender.leader_election.lease_events import LeaseEvents
from recommender.leader_election.lease_rules import LeaseTiming
from recommender.leader_election.lease_settings import LeaseSettings


class Journal(LeaseEvents):
    def __init__(self, path: Path) -> None:
        self._path = path

    def renewed(self, until: float) -> None:
        with self._path.open("a") as file:
            file.write(f"claim {since_boot()} {until}\n")


def main() -> None:
    kubeconfig, identity, journal, lease, deadline, retry = sys.argv[1:]
    timing = LeaseTiming(lease_seconds=int(lease), renew_deadline_seconds=float(deadline), retry_seconds=float(retry))
    settings = LeaseSettings(namespace="shop", name="leader", identity=identity, timing=timing)
    objects = ObjectClient(KubernetesClient(from_kubeconfig(kubeconfig)))
    LeaseElector(objects, settings, Journal(Path(journal))).run(threading.Event())


if __name__ == "__main__":
    main()
