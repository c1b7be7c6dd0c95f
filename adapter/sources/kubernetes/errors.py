"""What can go wrong between this program and kube-apiserver, as classes that callers can tell apart.

The package `kubernetes` has one exception for all statuses, whose text holds the whole body and all headers; transport
errors come through as they are, and configuration errors may quote the kubeconfig, tokens included. Here each case has
a class, foreign text is cut, and nothing that could hold a credential is kept or chained.

    KubernetesError
    +-- ConfigurationError      kubeconfig or service account cannot be used
    +-- UnreachableError        no connection, TLS refused, reset, deadline passed
    |   +-- SilentError         connected, but no byte for too long
    |   +-- DeadlineError       the time for the whole call is up
    +-- UnknownOutcomeError     a write was sent, and nothing tells whether it took effect
    +-- FencedError             a write was not sent: the permission for it would not have lasted
    +-- UnexpectedAnswerError   an answer that kube-apiserver would not give
    +-- StatusError             an answer other than 2xx
        +-- UnauthorizedError   401, or 403 for system:anonymous: the credentials were not taken
        +-- ForbiddenError      403
        +-- NotFoundError       404: for a list, this kind is not served
        +-- ConflictError       409: the object is of another version by now, or the name is taken
        +-- ExpiredError        410: this resourceVersion or continue token is compacted
        +-- ThrottledError      429
        +-- ServerError         5xx
"""

from __future__ import annotations

import msgspec

MESSAGE_LIMIT = 256
"""Characters of a foreign message that are kept."""
_LONGEST_RETRY_AFTER_SECONDS = 300.0
"""A server that asks to be left alone for longer is asked again after this."""


class KubernetesError(Exception):
    """A call to kube-apiserver failed; the message says which and why."""


class ConfigurationError(KubernetesError):
    """The kubeconfig, or the service account of the pod, cannot be used."""


class UnreachableError(KubernetesError):
    """The server was not reached, or did not answer in time."""


class SilentError(UnreachableError):
    """A connection that stood, and on which nothing came for too long."""


class DeadlineError(UnreachableError):
    """The time for the whole call ended first. A write that is sent once only was not sent."""


class UnknownOutcomeError(KubernetesError):
    """A write was sent and its answer did not come, or says that the server failed: it may have taken effect.

    Read the object before the next write.
    """


class FencedError(KubernetesError):
    """A write was not sent because the permission to write would have ended before it."""


class UnexpectedResponseError(KubernetesError):
    """The answer is not one of kube-apiserver."""


class StatusError(KubernetesError):
    """The server answered with an error.

    Attributes:
        code: HTTP status, or the code of an ERROR event of a watch.
        retry_after_seconds: how long the server asks to be left alone; 0 when it does not say.
    """

    def __init__(self, message: str, code: int, retry_after_seconds: float = 0.0) -> None:
        """`message` is what `str()` gives."""
        super().__init__(message)
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class UnauthorizedError(StatusError):
    """The credentials were not taken: expired, rotated, or none."""


class ForbiddenError(StatusError):
    """The credentials are good and lack the permission."""


class NotFoundError(StatusError):
    """The path is not served."""


class ConflictError(StatusError):
    """The object is of another version than the write was made for, or the name is taken; nothing was changed."""


class ExpiredError(StatusError):
    """The resourceVersion or continue token is older than what the server keeps."""


class ThrottledError(StatusError):
    """Too many requests; `retry_after_seconds` says when to come again."""


class ServerError(StatusError):
    """The server failed."""


class ErrorStatus(msgspec.Struct, gc=False):
    """The fields of `meta/v1 Status` that are read."""

    message: str = ""
    reason: str = ""
    code: int = 0


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
        status = msgspec.json.decode(body, type=ErrorStatus)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A proxy in between answers in HTML or plain text.
        status = ErrorStatus(message=body[: 4 * MESSAGE_LIMIT].decode(errors="replace"))
    return error_of_status(what, ErrorStatus(status.message, status.reason, code), _seconds(retry_after))


def error_of_status(what: str, status: ErrorStatus, retry_after_seconds: float = 0.0) -> StatusError:
    """Return the error for a Status, as an answer or an ERROR event carries it."""
    kind = _CLASSES.get(status.code, ServerError if status.code >= 500 else StatusError)
    if status.code == 403 and '"system:anonymous"' in status.message:
        kind = UnauthorizedError
    reason = " ".join(filter(None, (str(status.code), status.reason)))
    return kind(f"{what}: {reason}: {trimmed(status.message) or 'no message'}", status.code, retry_after_seconds)


def trimmed(message: str) -> str:
    """Return the message on one line, cut to `MESSAGE_LIMIT` characters."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"


def _seconds(retry_after: str | None) -> float:
    # kube-apiserver sends whole seconds, never a date.
    known = retry_after and retry_after.isascii() and retry_after.isdigit()
    return min(float(retry_after), _LONGEST_RETRY_AFTER_SECONDS) if retry_after and known else 0.0
