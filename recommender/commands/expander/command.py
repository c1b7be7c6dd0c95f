"""`tidewatch-recommender expander`: serves until it is stopped."""

from __future__ import annotations

import logging
import signal
import ssl
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from prometheus_client import CollectorRegistry

from adapter.foundation.files.file_contents import FilesError, require_regular
from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.logs import fields
from recommender.commands.chosen_recommendation import chosen
from recommender.commands.expander.flags import EXPANDER
from recommender.commands.program import METRICS_PREFIX, PROGRAM
from recommender.configuration.reading import ConfigurationFileError
from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext
from recommender.kinds.cluster_size.expanders.priorities import PrioritiesError, compile_priorities
from recommender.kinds.cluster_size.model.size_settings import cluster_size_settings
from recommender.running.configuration_reloader import ConfigurationReloader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.service.server.addresses import Address
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.cluster_size.expanders.asked_options import ExpanderRules

_log = logging.getLogger(__name__)

_ENDINGS: Final = (signal.SIGTERM, signal.SIGINT)
_LOOK_SECONDS: Final = 1.0
_DRAIN_SECONDS: Final = 5.0
_NODES: Final = 21
"""Assumed number of nodes, which Cluster Autoscaler does not state: with it, `price` prefers nodes of 8 cores."""


def expander(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(EXPANDER, arguments)
    configure_logs_by(values)
    try:
        _serve(values)
    except StartError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)  # noqa: T201 - the one line on stderr
        sys.exit(1)
    except (UsageError, FilesError) as error:
        exit_for_usage(PROGRAM, str(error))
    except ConfigurationFileError as error:
        exit_for_usage(PROGRAM, *map(str, error.problems))
    sys.exit(0)


def _serve(values: FlagValues) -> None:
    try:
        from recommender.commands.expander.server import ExpanderService, make_server  # noqa: PLC0415 - its packages are optional
    except ImportError as error:
        raise UsageError(f"the packages of gRPC are not installed ({error.name}): install tidewatch[grpc]") from error
    path, address = values.path("config"), values.address("listen")
    if path is None or address is None:
        raise UsageError("--config and --listen must not be empty: name the configuration file and an address")
    pair = _pair(values, address)
    followed = FollowedRules(ConfigurationReloader(path, CollectorRegistry(), METRICS_PREFIX), values)
    # The signals are blocked before there are threads, which then leave them to `sigtimedwait`.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
    server, port = make_server(ExpanderService(lambda: followed.rules), address, pair, values.path("client-ca-file"))
    _log.info("serving", extra=fields(address=f"{address.host}:{port}", tls=pair is not None))
    while signal.sigtimedwait(_ENDINGS, _LOOK_SECONDS) is None:
        followed.check()
    server.stop(_DRAIN_SECONDS).wait(_DRAIN_SECONDS)


class FollowedRules:
    """The rules of the configuration in force. Only one thread may call `check`; any thread may read `rules`."""

    def __init__(self, source: ConfigurationReloader, values: FlagValues) -> None:
        """Read the file. Raises UsageError if it has no rules."""
        self._source = source
        self._name = values.text("recommendation")
        self.rules = rules_of(source.current, self._name)
        source.on_change(self._replace)

    def check(self) -> None:
        """Reload the file if it has changed."""
        self._source.check()

    def _replace(self, configuration: Configuration) -> None:
        try:
            self.rules = rules_of(configuration, self._name)
        except UsageError as error:
            _log.error("the former expanders stay in force", extra=fields(reason=str(error)))


def rules_of(configuration: Configuration, name: str) -> ExpanderRules:
    """Return the rules of an entry. Raises UsageError."""
    from recommender.kinds.cluster_size.expanders.asked_options import ExpanderRules, stated_prices  # noqa: PLC0415 - its packages are optional

    found = cluster_size_settings(configuration.recommendations)
    refused = () if found and not name else configuration.refused  # An unnamed choice goes on without refused entries.
    settings = chosen(name, "clusterSize", found, refused, "node groups")
    if settings.priorities is None and settings.priorities_config_map is not None:
        raise UsageError(
            "the expander priority reads no ConfigMap here, since this program does not ask the cluster: write "
            "`priorities` in the file"
        )
    try:
        priorities = None if settings.priorities is None else compile_priorities(settings.priorities, "priorities")
    except PrioritiesError as error:
        raise UsageError(str(error)) from error
    context = ExpanderContext(_NODES, settings.random_seed, priorities)
    return ExpanderRules(settings.expanders, context, stated_prices(settings.node_groups))


def _pair(values: FlagValues, address: Address) -> tuple[Path, Path] | None:
    certificate, key = values.path("tls-cert-file"), values.path("tls-private-key-file")
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together: set both")
    if certificate is None or key is None:
        if address.host not in {"127.0.0.1", "::1", "localhost"}:
            raise UsageError(
                "Cluster Autoscaler connects only with TLS: set --tls-cert-file and --tls-private-key-file"
            )
        if values.path("client-ca-file") is not None:
            raise UsageError("--client-ca-file has no effect without --tls-cert-file: set both")
        return None
    for path in (certificate, key, values.path("client-ca-file")):
        if path is not None:
            _require_file(path)
    _require_pair(certificate, key)
    return certificate, key


def _require_file(path: Path) -> None:
    """Raise UsageError unless the path is that of a readable regular file; gRPC would wait for the writer of a FIFO."""
    try:
        require_regular([path])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}: name a file with PEM") from None


def _require_pair(certificate: Path, key: Path) -> None:
    """Raise UsageError for files that gRPC would refuse without saying which and why."""
    try:
        # Without `password`, OpenSSL would prompt for the passphrase of an encrypted key on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError as error:
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(f"{key}: not the key of {certificate}: name two files that belong together") from error
        raise UsageError(
            f"{certificate} and {key} cannot be used: name a certificate and its unencrypted key, both in PEM"
        ) from error
