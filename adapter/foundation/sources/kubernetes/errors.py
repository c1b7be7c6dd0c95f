"""The errors of calls to kube-apiserver, with a class for each case.

The package `kubernetes` has one exception for all statuses, whose text contains the whole body and all headers. It
passes on transport errors, and its configuration errors may quote the kubeconfig, including tokens. Here, each case has
a class, other programs' messages are truncated, and nothing that may contain a credential is kept or chained.

    KubernetesError
    +-- ConfigurationError      kubeconfig or service account cannot be used
    |   +-- MissingProgramError the program that creates the credentials is not installed
    +-- UnreachableError        no connection, TLS refused, reset, deadline passed
    |   +-- SilentError         connected, but no byte for too long
    |   +-- DeadlineError       the time for the whole call is up
    |   +-- NoThreadError       not sent: the system could start no thread for the call
    +-- UnknownOutcomeError     a write was sent, and it is unknown whether it took effect
    +-- FencedError             a write was not sent: the permission for it would not have lasted
    +-- UnexpectedResponseError an answer that kube-apiserver would not give
    +-- StatusError             an answer other than 2xx
        +-- UnauthorizedError   401, or 403 for system:anonymous: the credentials were not accepted
        +-- ForbiddenError      403: a right is missing
        +-- AdmissionError      403 to a write by a webhook, a policy, a quota, or in a namespace that ends
        +-- NotFoundError       404: there is no such object; for a list, this kind is not served
        |   +-- NotServedError  404: the API server serves nothing at this path, such as in this version of a kind
        +-- ConflictError       409: the object has another version now, or the name is taken
        +-- ExpiredError        410: this resourceVersion or continue token is compacted
        +-- ThrottledError      429
        +-- ServerError         5xx
"""

from __future__ import annotations

import msgspec

from adapter.foundation.objects.decoders import decoder_of

MESSAGE_LIMIT = 256
"""Longest part of another program's message that is kept, in characters."""
_LONGEST_RETRY_AFTER_SECONDS = 32.0
"""Longest wait that a server can request in `Retry-After`: the most that kube-apiserver asks for when it is overloaded.

Gateways ask for minutes while they have no server, which may be back a moment later. client-go would wait that long.
"""


class KubernetesError(Exception):
    """A call to kube-apiserver failed; the message names the call and the reason."""


class ConfigurationError(KubernetesError):
    """The kubeconfig, or the service account of the pod, cannot be used."""


class MissingProgramError(ConfigurationError):
    """The program that creates a user's credentials is not installed; `hint` says what to do."""

    def __init__(self, command: str, hint: str) -> None:
        super().__init__(f"{command}, which `exec` names, is not installed")
        self.hint = hint


class UnreachableError(KubernetesError):
    """The server was not reached, or did not answer in time."""


class SilentError(UnreachableError):
    """An open connection on which nothing arrived for too long."""


class DeadlineError(UnreachableError):
    """The deadline of the whole call passed. A write that is sent only once was not sent."""


class NoThreadError(UnreachableError):
    """The call was not sent, because the system could not start a thread for it."""


class UnknownOutcomeError(KubernetesError):
    """A write was sent, but there was no answer, or the server failed: the write may have taken effect.

    Read the object before the next write.
    """


class FencedError(KubernetesError):
    """A write was not sent because the permission to write could have ended before the write did."""


class UnexpectedResponseError(KubernetesError):
    """The answer is one that kube-apiserver would not give."""


class StatusError(KubernetesError):
    """The server answered with an error.

    Attributes:
        code: HTTP status, or the code of an ERROR event of a watch.
        retry_after_seconds: how long the server asks clients to wait; 0 if it does not ask.
    """

    def __init__(self, message: str, code: int, retry_after_seconds: float = 0.0) -> None:
        """`message` is the text of `str()`."""
        super().__init__(message)
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class UnauthorizedError(StatusError):
    """The credentials were not accepted: they expired, were rotated, or are missing."""


class ForbiddenError(StatusError):
    """The credentials are valid, but lack the permission."""


class AdmissionError(StatusError):
    """The credentials suffice, but the cluster does not admit this write: it says nothing about other objects."""


class NotFoundError(StatusError):
    """There is no such object, or the path is not served."""


class NotServedError(NotFoundError):
    """The path is not served: the kind, its version or its subresource is unknown. The object may exist."""


class ConflictError(StatusError):
    """The object has another version than the write names, or the name is taken; nothing was changed."""


class ExpiredError(StatusError):
    """The resourceVersion or continue token is older than what the server keeps."""


class ThrottledError(StatusError):
    """There were too many requests; `retry_after_seconds` is the time to wait."""


class ServerError(StatusError):
    """The server failed."""


class ErrorStatus(msgspec.Struct, gc=False):
    """The fields of `meta/v1 Status` that are read."""

    message: str = ""
    reason: str = ""
    code: int = 0


_ERROR_STATUSES = decoder_of(ErrorStatus)
_OF_ADMISSION = ("denied the request", "denied request", "exceeded quota", "because it is being terminated")
"""Words of webhooks, of ValidatingAdmissionPolicies, of quotas and of NamespaceLifecycle in a 403."""
_NOT_SERVED = ("404 page not found", "the server could not find the requested resource")
"""Words of kube-apiserver in a 404 for a path that is not served. A 404 for an object names the object."""
_OF_AUTHORIZATION = ' is forbidden: User "'
"""Words of kube-apiserver where a right is missing; whatever an authorizer adds follows them."""


_CLASSES: dict[int, type[StatusError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    429: ThrottledError,
}


def error_of_answer(what: str, code: int, body: bytes, retry_after: str | None = None) -> StatusError:
    """Return the error for an answer with HTTP status `code`; `what` names the call: `GET /api/v1/pods`."""
    try:
        status = _ERROR_STATUSES.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A proxy answers in HTML or plain text.
        status = ErrorStatus(message=body[: 4 * MESSAGE_LIMIT].decode(errors="replace"))
    return error_of_status(what, ErrorStatus(status.message, status.reason, code), _seconds(retry_after))


def error_of_status(what: str, status: ErrorStatus, retry_after_seconds: float = 0.0) -> StatusError:
    """Return the error for the Status of an answer or of an ERROR event."""
    kind = _CLASSES.get(status.code, ServerError if status.code >= 500 else StatusError)
    if status.code == 403 and '"system:anonymous"' in status.message:
        kind = UnauthorizedError
    elif status.code == 403 and _is_of_admission(status.message):
        kind = AdmissionError
    elif status.code == 404 and any(words in status.message for words in _NOT_SERVED):
        kind = NotServedError
    reason = " ".join(filter(None, (str(status.code), status.reason)))
    return kind(f"{what}: {reason}: {trim_message(status.message) or 'no message'}", status.code, retry_after_seconds)


def _is_of_admission(message: str) -> bool:
    return _OF_AUTHORIZATION not in message and any(words in message for words in _OF_ADMISSION)


def error_of_event(path: str, content: msgspec.Raw) -> StatusError | UnexpectedResponseError:
    """Return the error that an ERROR event of a watch of `path` states."""
    try:
        return error_of_status(f"watch of {path}", _ERROR_STATUSES.decode(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return UnexpectedResponseError(f"watch of {path}: not an event: {error}")


def trim_message(message: str) -> str:
    """Return the message on one line, cut to `MESSAGE_LIMIT` characters."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"


def _seconds(retry_after: str | None) -> float:
    # kube-apiserver sends whole seconds, never a date.
    known = retry_after and retry_after.isascii() and retry_after.isdigit()
    return min(float(retry_after), _LONGEST_RETRY_AFTER_SECONDS) if retry_after and known else 0.0


def is_of_the_server(error: BaseException) -> bool:
    """Return whether a call failed because of the server, the network or the credentials, not because of its object."""
    faults = (
        ConfigurationError,
        UnreachableError,
        UnknownOutcomeError,
        UnexpectedResponseError,
        UnauthorizedError,
        ThrottledError,
        ServerError,
    )
    return isinstance(error, faults)
