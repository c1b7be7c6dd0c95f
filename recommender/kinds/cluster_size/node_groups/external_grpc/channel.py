"""The connection to a provider: mutual TLS, and calls that each have a deadline and are sent at most once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Generic, Protocol, Self, TypeVar

import grpc

from adapter.foundation.sources.kubernetes.errors import trim_message
from recommender.kinds.cluster_size.node_groups.external_grpc.certificate_files import followed_certificates
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.files.followed_files import FollowedFiles
    from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups
    from recommender.kinds.cluster_size.node_groups.external_grpc.certificate_files import Contents

_SERVICE: Final = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"
_LARGEST_ANSWER_BYTES: Final = 32 * 2**20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _LARGEST_ANSWER_BYTES),
    # A call that changes a size must not be repeated by the library.
    ("grpc.enable_retries", 0),
    # A provider is a service of the cluster.
    ("grpc.enable_http_proxy", 0),
)
_UNKNOWN_OUTCOMES: Final = frozenset(
    {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
)
_UNKNOWN_EFFECTS: Final = _UNKNOWN_OUTCOMES | {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DATA_LOSS,
}
"""After these codes, a change may have taken effect: the library also reports the last three for an unreadable
answer."""
_AT_ONCE: Final = 8
"""The most calls that run at the same time."""
_LEAST_SECONDS: Final = 0.001


class WireMessage(Protocol):
    """A protobuf message."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Return the message as bytes."""


class WireAnswer(WireMessage, Protocol):
    """A protobuf message that can be read from bytes."""

    @classmethod
    def FromString(cls, s: bytes) -> Self:  # noqa: N802 - likewise
        """Return the message that the bytes hold."""


A = TypeVar("A", bound=WireAnswer)
A_co = TypeVar("A_co", covariant=True)


class CallError(PluginError):
    """A call failed; the message names it and what the provider states."""

    def __init__(self, method: str, code: grpc.StatusCode, details: str, address: str) -> None:
        """`details` are the provider's words, which are truncated."""
        message = f"{method}: {code.name}: {trim_message(details) or 'no message'}"
        hint = f": check that the provider at {address} runs and answers" if code in _UNKNOWN_OUTCOMES else ""
        super().__init__(message + hint)
        self.code = code

    @property
    def is_unimplemented(self) -> bool:
        """Whether the provider does not have this call.

        Providers that are built with the published wrapper answer UNKNOWN where a cloud has no options or no template.
        """
        return self.code in {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN}

    @property
    def is_unanswered(self) -> bool:
        """Whether the provider has not answered."""
        return self.code in _UNKNOWN_OUTCOMES

    @property
    def may_have_had_an_effect(self) -> bool:
        """Whether a change may have taken effect although its call has failed."""
        return self.code in _UNKNOWN_EFFECTS


class ProviderChannel:
    """Calls to one provider. `renew` loads changed certificates. Not thread-safe."""

    def __init__(self, settings: ExternalGrpcGroups) -> None:
        """Store the settings; nothing is connected yet."""
        self._settings = settings
        self._certificates: FollowedFiles[None, Contents] | None = None
        self._contents: Contents | None = None
        self._channel: grpc.Channel | None = None

    def renew(self) -> None:
        """Connect anew if certificates have changed and can be used; otherwise, the connection stays.

        Raises CertificateFilesError if no usable certificates have been read yet.
        """
        settings = self._settings
        if self._certificates is None:
            self._certificates = followed_certificates(settings)
        else:
            self._certificates.check()
        contents = self._certificates.value
        if contents == self._contents and self._channel is not None:
            return
        self.close()
        self._contents = contents
        if settings.ca_file is None:
            self._channel = grpc.insecure_channel(settings.address, options=_OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(*contents)
            self._channel = grpc.secure_channel(settings.address, credentials, options=_OPTIONS)

    def ask(self, method: str, request: WireMessage, answer: type[A], seconds: float) -> A:
        """Return the response to a call. Raises CallError."""
        (found,) = self.ask_each(method, (request,), answer, lambda: seconds)
        if isinstance(found, CallError):
            raise found
        return found

    def ask_each(
        self, method: str, requests: Iterable[WireMessage], answer: type[A], seconds: Callable[[], float]
    ) -> list[A | CallError]:
        """Return the responses to several calls, or their errors, in order.

        `seconds` returns how long a call that begins now may take. A slow call does not delay the others.
        """
        call = self._call(method, answer)
        running = []
        free = threading.Semaphore(_AT_ONCE)
        for each in requests:
            free.acquire()
            one = call.future(each, timeout=max(seconds(), _LEAST_SECONDS))
            one.add_done_callback(lambda _: free.release())
            running.append(BegunCall(method, one, self._settings.address))
        return [one.answer() for one in running]

    def begin(self, method: str, request: WireMessage, answer: type[A], seconds: float) -> BegunCall[A]:
        """Send a request, and do not wait for its answer."""
        return BegunCall(method, self._call(method, answer).future(request, timeout=seconds), self._settings.address)

    def _call(self, method: str, answer: type[A]) -> grpc.UnaryUnaryMultiCallable[WireMessage, A]:
        if self._channel is None:
            self.renew()
        assert self._channel is not None, "renewed"
        return self._channel.unary_unary(
            _SERVICE + method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )

    def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


class _Running(Protocol[A_co]):
    """A call that is running."""

    def done(self) -> bool: ...
    def result(self) -> A_co: ...
    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...


class BegunCall(Generic[A]):
    """A call that was sent without waiting for its answer."""

    def __init__(self, method: str, running: _Running[A], address: str) -> None:
        self._method = method
        self._running = running
        self._address = address

    @property
    def is_done(self) -> bool:
        """Whether the call has ended, with an answer or without one."""
        return self._running.done()

    def answer(self) -> A | CallError:
        """Return the answer, or how the call failed; waits for its end."""
        try:
            return self._running.result()
        except grpc.FutureCancelledError:
            return CallError(self._method, grpc.StatusCode.CANCELLED, "the connection was closed", self._address)
        except grpc.RpcError:
            return CallError(self._method, self._running.code(), self._running.details() or "", self._address)
