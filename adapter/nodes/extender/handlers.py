"""The routes of kube-scheduler's extender: `/scheduler/filter` and `/scheduler/…/prioritize`.

The scheduler accepts only status 200. Any other fails the attempt to place the pod, or makes the scheduler continue
without this extender if it is `ignorable`; missing scores are silently left out. So missing metrics are answered with
200, and only a body that the scheduler would never send is answered with an error.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.time.thread_limit import ThreadLimit, ThreadLimitError
from adapter.foundation.web.http import Request, Response
from adapter.foundation.web.routes import Handle, Route
from adapter.nodes.extender.filter import failed_nodes, is_exempt
from adapter.nodes.extender.prioritize import Prioritizer, UnknownPolicyError, policy_named
from adapter.nodes.extender.protocol import (
    LARGEST_BODY_BYTES,
    ExtenderArgs,
    ExtenderProtocolError,
    decode_args,
    encode_filter_result,
    encode_priorities,
)
from adapter.nodes.model.answers import error_answer
from adapter.nodes.model.scheduling_settings import PolicyName, SchedulingSettings, usage_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.nodes.model.columns import PendingPod
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot

T = TypeVar("T")

BASIS_HEADER: Final = "Tidewatch-Basis"

_MOST_AT_ONCE: Final = 4
_LONGEST_WAIT_SECONDS: Final = 0.1
"""How long a request waits for its turn: less than the scheduler's timeout (500 ms as shipped), so that it gets the
reason."""

_log: Final = logging.getLogger(__name__)


class Extender:
    """Answers the scheduler, only from memory. Safe to use from any number of threads."""

    def __init__(
        self,
        snapshot: Callable[[], NodesSnapshot],
        pending_of: Callable[[bytes], PendingPod],
        settings: SchedulingSettings,
    ) -> None:
        """`pending_of` reads a pending pod from a Pod in JSON, and raises ValueError or msgspec.MsgspecError."""
        self._snapshot = snapshot
        self._pending_of = pending_of
        self._settings = settings
        self._usage_limits = usage_limits(settings.policies)
        self._limit = ThreadLimit(_MOST_AT_ONCE)
        self._state = StateLog(_log)

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of the filter, of all configured policies together, and of each single policy."""
        answers = {
            "/scheduler/filter": self._filter,
            "/scheduler/prioritize": self._by(Prioritizer(self._settings.policies)),
        }
        for name in PolicyName:
            answers[f"/scheduler/{name}/prioritize"] = self._by(Prioritizer([policy_named(name, self._settings)]))
        frequent = (
            Route(path, self._handler(answer), ("POST",), LARGEST_BODY_BYTES, is_frequent=True)
            for path, answer in answers.items()
        )
        # The body is read, since the server closes a connection with an unread body.
        unknown = Route("/scheduler/<policy>/prioritize", self._unknown_policy, (), LARGEST_BODY_BYTES)
        return (*frequent, unknown)

    def _handler(self, answer: Callable[[ExtenderArgs], Response]) -> Handle:
        def handle(request: Request) -> Response:
            try:
                with self._limit.entered(_LONGEST_WAIT_SECONDS):
                    return answer(self._decode_arguments(request.body))
            except ThreadLimitError:
                return self._refusal_answer(503, f"{_MOST_AT_ONCE} requests are being answered already: try again")
            except ExtenderProtocolError as e:
                return self._refusal_answer(400, str(e))

        return handle

    def _decode_arguments(self, body: bytes | bytearray) -> ExtenderArgs:
        args = decode_args(body)
        if args.nodes:
            self._state.failed(
                "nodes",
                "kube-scheduler sends whole Node objects, which costs both sides many times the work: set "
                "nodeCacheCapable: true for this extender in its configuration",
                level=logging.WARNING,
                nodes=len(args.nodes),
            )
        return args

    def _filter(self, args: ExtenderArgs) -> Response:
        limits = self._settings.filter
        if not (limits.limits or limits.pools or self._usage_limits):
            return Response(200, encode_filter_result(args, {}))
        snapshot = self._snapshot()
        pod = self._read(args, self._pending_of)
        is_free = self._read(args, partial(is_exempt, daemon_sets=snapshot.daemon_sets))
        accepts_all = is_free or not self._is_ours(pod)
        failed = {} if accepts_all else failed_nodes(snapshot, pod, args.names, limits, self._usage_limits)
        return Response(200, encode_filter_result(args, failed))

    def _by(self, prioritizer: Prioritizer) -> Callable[[ExtenderArgs], Response]:
        def answer(args: ExtenderArgs) -> Response:
            pod, snapshot = self._read(args, self._pending_of), self._snapshot()
            if not self._is_ours(pod):
                # The scheduler adds nothing to the nodes that the list leaves out.
                return Response(200, encode_priorities((), ()), headers=((BASIS_HEADER, "none"),))
            scores = prioritizer.priorities(snapshot, pod, args.names)
            return Response(200, encode_priorities(args.names, scores), headers=((BASIS_HEADER, snapshot.basis),))

        return answer

    def _read(self, args: ExtenderArgs, read: Callable[[bytes], T]) -> T:
        """Return what `read` returns for the Pod of the arguments. Raises ExtenderProtocolError."""
        try:
            return read(args.pod)
        except (ValueError, msgspec.MsgspecError, RecursionError) as e:
            raise ExtenderProtocolError(f"Pod cannot be read: {e}") from e

    def _is_ours(self, pod: PendingPod) -> bool:
        names = self._settings.scheduler_names
        return not names or pod.scheduler_name in names

    def _refusal_answer(self, status: int, message: str) -> Response:
        self._state.failed(
            str(status), f"a request of kube-scheduler was answered with {status}", level=logging.WARNING, first=message
        )
        return error_answer(status, message)

    def _unknown_policy(self, request: Request) -> Response:
        try:
            policy_named(request.path_values["policy"], self._settings)
        except UnknownPolicyError as e:
            return error_answer(404, str(e))
        return error_answer(405, "request the scores of a policy with POST, as kube-scheduler does")
