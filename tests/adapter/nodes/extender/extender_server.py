"""A server in its own process that answers as an extender for a snapshot of 5,000 nodes; it is run as a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.service.runtime.logs import configure_logs
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.process import serve_forever
from adapter.foundation.service.server.server_settings import ServerOptions
from adapter.foundation.web.http import Response
from adapter.foundation.web.wsgi import wsgi_application
from adapter.nodes.extender.handlers import Extender
from adapter.nodes.extender.scores_page import scores_routes
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import (
    DEFAULT_ARGS,
    FilterSettings,
    PolicyName,
    PolicySettings,
    SchedulingSettings,
)
from adapter.nodes.placement.pending_pod import OwnerSelectors, pending_pod
from tests.adapter.nodes.extender.snapshots import nodes_snapshot

if TYPE_CHECKING:
    from adapter.nodes.model.columns import PendingPod

NODES = 5000
POLICIES = (PolicyName.TARGET_LOAD_PACKING, PolicyName.LOAD_VARIATION_RISK_BALANCING)
SETTINGS = SchedulingSettings(
    policies=tuple(PolicySettings(name, 1, DEFAULT_ARGS[name]) for name in POLICIES),
    filter=FilterSettings({LoadResource.CPU: 0.8, LoadResource.MEMORY: 0.9}),
)
POD = msgspec.json.Decoder(PodForm)
NO_SELECTORS = OwnerSelectors()


def pending_of(raw: bytes) -> PendingPod:
    """Return the pod, read as the command reads it."""
    return pending_pod(POD.decode(raw), NO_SELECTORS, SETTINGS.gpu)


def main() -> None:
    ratios = np.random.default_rng(7).uniform(0.05, 0.95, (2, NODES))
    current = nodes_snapshot({"cpu": ratios[0].tolist(), "memory": ratios[1].tolist()})
    routes = (*Extender(lambda: current, pending_of, SETTINGS).routes(), *scores_routes(lambda: current, SETTINGS))
    configure_logs()
    options = ServerOptions(
        program="extender-server",
        version="0",
        metrics_prefix="extender_server",
        address=Address("127.0.0.1", 0),
        tls=None,
        plain_address=None,
        shutdown_delay_seconds=0.0,
    )
    serve_forever(options, lambda _: wsgi_application(lambda _: Response(404, b""), routes=routes))


if __name__ == "__main__":
    main()
