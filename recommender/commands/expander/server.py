"""The server of the expander: every call is answered within the deadline of Cluster Autoscaler."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import grpc

from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.server.addresses import listening_socket
from recommender.kinds.cluster_size.expanders.asked_options import ExpanderRules, TooLateError, best_option
from recommender.kinds.cluster_size.wire.expander_pb2 import BestOptionsRequest, BestOptionsResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.service.server.addresses import Address

_log = logging.getLogger(__name__)

SERVICE: Final = "grpcplugin.Expander"
ANSWER_SECONDS: Final = 4.0
"""Time limit of an answer; Cluster Autoscaler waits for 5 s."""
_LARGEST_REQUEST_BYTES: Final = 128 * 2**20
"""The size of the largest request that is accepted: the limit that Cluster Autoscaler has for answers."""
_AT_ONCE: Final = 4


class ExpanderService:
    """Answers calls. Thread-safe."""

    def __init__(self, rules: Callable[[], ExpanderRules], clock: Callable[[], float] = time.monotonic) -> None:
        """Answer each call by the rules in force at that time, which `rules` returns."""
        self._rules = rules
        self._clock = clock

    def best_options(self, request: BestOptionsRequest, context: grpc.ServicerContext) -> BestOptionsResponse:
        """Return the best option, or no option if none is left or the best one is not found in time."""
        # A call without a deadline has no time that remains.
        until = self._clock() + min(ANSWER_SECONDS, 0.8 * (context.time_remaining() or ANSWER_SECONDS))
        try:
            found = best_option(request, self._rules(), lambda: self._clock() >= until)
        except TooLateError:
            _log.warning("no group is named: the options could not be compared in time", extra=_request_fields(request))
            return BestOptionsResponse()
        _log.info("answered", extra=_request_fields(request) | fields(group=found.group, reason=found.reason))
        return found.response


def make_server(
    service: ExpanderService, address: Address, pair: tuple[Path, Path] | None, client_ca: Path | None
) -> tuple[grpc.Server, int]:
    """Return a started server and its port. Raises StartError.

    The certificate and the key are read again for new connections.
    """
    # gRPC's own error for an address that cannot be used names no repair, and it logs a line of its own.
    listening_socket(address).close()
    server = grpc.server(
        ThreadPoolExecutor(_AT_ONCE, "expander"),
        options=(("grpc.max_receive_message_length", _LARGEST_REQUEST_BYTES), ("grpc.so_reuseport", 0)),
        maximum_concurrent_rpcs=4 * _AT_ONCE,
    )
    handler = grpc.unary_unary_rpc_method_handler(
        service.best_options,
        request_deserializer=BestOptionsRequest.FromString,
        response_serializer=BestOptionsResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"BestOptions": handler}),))
    where = str(address) if address.host else f"[::]:{address.port}"
    try:
        if pair is None:
            port = server.add_insecure_port(where)
        else:
            port = server.add_secure_port(where, _credentials(pair, client_ca))
    except (OSError, RuntimeError, ValueError) as error:
        raise StartError(f"--listen {address}: {error}") from error
    server.start()
    return server, port


def _credentials(pair: tuple[Path, Path], client_ca: Path | None) -> grpc.ServerCredentials:
    def read() -> grpc.ServerCertificateConfiguration:
        keys = [(pair[1].read_bytes(), pair[0].read_bytes())]
        clients = None if client_ca is None else client_ca.read_bytes()
        return grpc.ssl_server_certificate_configuration(keys, clients)

    last = [read()]

    def fetch() -> grpc.ServerCertificateConfiguration:
        try:
            last[0] = read()
        except OSError as error:
            _log.warning("the former certificate stays in use", extra=fields(reason=str(error)))
        return last[0]

    return grpc.dynamic_ssl_server_credentials(last[0], fetch, require_client_authentication=client_ca is not None)


def _request_fields(request: BestOptionsRequest) -> dict[str, object]:
    return fields(
        options=len(request.options), pods=max((len(o.podBytes or o.pod) for o in request.options), default=0)
    )
