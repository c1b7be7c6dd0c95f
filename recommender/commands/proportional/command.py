"""`tidewatch-recommender proportional`: a drop-in for cluster-proportional-autoscaler, in one small process.

Its command line becomes a configuration with one recommendation.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, NoReturn

from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.garbage_collector import settle_collector
from adapter.foundation.service.server.addresses import Address, listening_socket
from adapter.foundation.service.version import program_version
from recommender.commands.one_process.port import Port
from recommender.commands.one_process.start import run_drop_in
from recommender.commands.poll_period import poll_seconds
from recommender.commands.proportional.flags import PROPORTIONAL
from recommender.configuration.recommender_configuration import Configuration, LeaderElection
from recommender.decisions.policy_settings import Output, Owners, RecommendationPolicy
from recommender.kinds.kind import Recommendation
from recommender.kinds.proportional.cpa_flags import FlagError, read_default_params, read_node_labels, read_targets
from recommender.kinds.proportional.parameters import NodeFilter, ParametersConfigMap, ProportionalSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.foundation.service.flags.table import FlagValues


SHORTEST_STALE_SECONDS = 60.0
_POLLS_UNTIL_STALE = 3


def proportional(arguments: Sequence[str]) -> NoReturn:
    """Run the command and end the process. Raises SystemExit only if the flags or --help end it before the start."""
    run_drop_in(PROPORTIONAL, arguments, _port_and_run)


def _port_and_run(values: FlagValues) -> tuple[Port, Callable[[], int]]:
    configuration = configuration_of(values, os.environ)
    port = Port(listening_socket(values.address("plain-bind-address") or Address("", 8080)))
    page = _page_listener(values)
    return port, lambda: _run(values, configuration, port, page)


def _run(values: FlagValues, configuration: Configuration, port: Port, page_listener: socket.socket | None) -> int:
    """Load and start everything else; return the exit status. Raises UsageError."""
    # The port answers by now: loading takes longer than the kubelet waits for it, at a few hundredths of a core.
    from recommender.commands.one_process.process import OneProcess  # noqa: PLC0415 - see above
    from recommender.commands.proportional.assembly import ProportionalOptions, start  # noqa: PLC0415 - likewise

    process = OneProcess(port, program_version())
    options = ProportionalOptions(
        cluster=cluster_settings(values),
        dry_run=values.boolean("dry-run"),
        most_failures=values.integer("max-sync-failures"),
        pod=socket.gethostname(),
    )
    if page_listener is None:
        start(options, configuration, process)
    else:
        from adapter.foundation.web.allowed_hosts import AllowedHosts  # noqa: PLC0415 - only where it is requested
        from recommender.commands.proportional.page import Page  # noqa: PLC0415 - likewise

        own = values.text("bind-address")
        try:
            hosts = AllowedHosts((*values.texts("allowed-hosts"), own) if own else values.texts("allowed-hosts"))
        except ValueError as error:
            raise UsageError(f"--allowed-hosts: {error}") from error
        page = Page(page_listener, hosts, configuration.state, process)
        page.start(start(options, configuration, process, page.history.add))
    settle_collector()
    return process.run()


def _page_listener(values: FlagValues) -> socket.socket | None:
    """Return the socket on which the page is served; None if no flag asks for the page. Raises StartError."""
    if not values.given & {"port", "bind-address"}:
        return None
    return listening_socket(Address(values.text("bind-address"), values.integer("port")))


def configuration_of(values: FlagValues, environment: Mapping[str, str]) -> Configuration:
    """Return the configuration that the flags describe. Raises UsageError."""
    namespace = values.text("namespace") or environment.get("MY_POD_NAMESPACE", "")
    if not namespace:
        raise UsageError("--namespace is not set, and neither is MY_POD_NAMESPACE: name the namespace of the targets")
    config_map = values.text("configmap")
    if not config_map:
        raise UsageError("--configmap is empty: name the ConfigMap with the parameters")
    poll_period = poll_seconds(values, "poll-period-seconds")
    try:
        targets = read_targets(values.text("target"), namespace)
        read_node_labels(values.text("nodelabels"))
        defaults = read_default_params(values.text("default-params")) if values.text("default-params") else None
    except FlagError as error:
        raise UsageError(str(error)) from error
    stale_after = max(SHORTEST_STALE_SECONDS, _POLLS_UNTIL_STALE * poll_period)
    policy = RecommendationPolicy(
        name=config_map,
        type="proportional",
        targets=targets,
        outputs=frozenset({Output.METRIC, Output.SCALE}),
        # The operator has named these targets, and the rights of the original program do not include HPAs.
        owners=Owners(autoscalers_required=False),
        stale_after_seconds=stale_after,
    )
    subject = ProportionalSettings(
        config_map=ParametersConfigMap(namespace, config_map, defaults),
        node_filter=NodeFilter(
            selector=values.text("nodelabels"),
            ignore_taints=frozenset(values.texts("ignore-taints")),
            ignore_virtual_nodes=values.boolean("ignore-virtual-nodes"),
        ),
    )
    return Configuration(
        poll_interval_seconds=poll_period,
        stale_after_seconds=stale_after,
        leader_election=LeaderElection(values.boolean("leader-elect"), namespace, config_map),
        recommendations=(Recommendation(policy, subject),),
    )
