"""The errors of queries, with a class for each case that callers distinguish.

    PrometheusError
    ├── PrometheusUnreachableError     no server, no TLS, cut off, or a gateway without a server: it may work later
    ├── PrometheusTimeoutError         no answer within the time limit, by our clock, Prometheus's or a gateway's
    ├── QueryRefusedError              Prometheus refused the request: a narrower query may work
    ├── AuthenticationRefusedError     401 or 403: credentials are missing or wrong
    ├── AnswerTooLargeError            more bytes or samples than the caller allows: a narrower query may work
    ├── NotAVectorError                the expression gives a range of samples or a text, and so has no values
    ├── UnexpectedAnswerError          the answer is not in the format of Prometheus's API
    │   └── IncompleteAnswerError      the server warns that samples are missing, as while a store is away
    └── UnreadableForMatchersError     matchers are set but cannot be put into the query, which was not sent

The transport's own errors are only chained (`raise … from`). Messages contain the shortened query and the cause, but no
credentials, and at most a few words of another program's answer. `SettingsError` is raised before any request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN_CHARACTERS = 200
_KNOWS_NO_QUOTED_NAMES: Final = re.compile(
    r"unexpected string .* in (?:label matching, expected identifier|grouping opts, expected label)", re.DOTALL
)
"""What Prometheus 2 says of a query with the name of a metric or of a label between quotes."""
_ERROR_TYPE: Final = re.compile(r"[a-z_0-9]{1,30}")
_SEARCHED_CHARACTERS = 400
"""No more of a message is searched, because the time grows with the square of the length."""


class SettingsError(ValueError):
    """A setting of the connection is invalid. The message says which one, and what to write instead."""


class PrometheusError(Exception):
    """A query has no answer."""

    result: ClassVar[str] = "failed"
    """Name of the error in counters."""

    def __init__(
        self, query: str, cause: str, said: str = "", public_cause: str | None = None, repair: str = ""
    ) -> None:
        """`cause` is in words of ours; `said` is what the server answered, which is shortened and added to it.

        A cause that names a server, a file or matchers needs a `public_cause` that does not.
        """
        whole = f"{cause}: {shorten_message(said)}" if said else cause
        super().__init__(query, whole)
        self.query = query
        """The whole PromQL expression, series selector or API path of the request."""
        self.cause = whole
        """The reason, without the query."""
        self.own_cause = cause
        """The reason without what the server said."""
        self.public_cause = cause if public_cause is None else public_cause
        """The same without the names of servers, files and matchers, which not every client may know of."""
        self.said = said
        """The words of the server, which may name series and servers that not every client may know of."""
        self.repair = repair
        """What to do, if the answer itself shows it; if it is empty, only the class of the error tells."""

    def __str__(self) -> str:
        return f"query {shorten_message(self.query)}: {self.cause}"


class PrometheusUnreachableError(PrometheusError):
    """No server answered: not resolved or connected, TLS refused, cut off, HTTP 5xx except 504, or a store is away."""

    result = "unreachable"


class PrometheusTimeoutError(PrometheusError):
    """The answer did not arrive in time."""

    result = "timeout"


class QueryRefusedError(PrometheusError):
    """Prometheus refused the query."""

    result = "refused"

    def __init__(self, query: str, error_type: str, message: str) -> None:
        knows_none = error_type == "bad_data" and _KNOWS_NO_QUOTED_NAMES.search(message[:_SEARCHED_CHARACTERS])
        hint = ", because names between quotes need Prometheus 3" if knows_none else ""
        super().__init__(
            query,
            f"Prometheus refused it ({shorten_message(error_type)}){hint}",
            message,
            f"Prometheus refused it ({public_error_type(error_type)}){hint}",
        )
        self.error_type = error_type
        """Type of the error in Prometheus's API, such as `bad_data`; `http_414` if there is only an HTTP status."""

    @property
    def is_of_text(self) -> bool:
        """Whether the text of the query cannot be parsed; all other errors may pass, or affect only wider queries."""
        return self.error_type == "bad_data"


class AuthenticationRefusedError(PrometheusError):
    """The credentials are missing or wrong (HTTP 401 or 403)."""

    result = "unauthenticated"


class AnswerTooLargeError(PrometheusError):
    """The answer has more bytes or samples than the limit."""

    result = "too_large"


class NotAVectorError(PrometheusError):
    """The expression gives neither a vector nor a scalar: Prometheus answered as it should, and the query is wrong."""

    result = "refused"


class UnexpectedAnswerError(PrometheusError):
    """The answer is not what Prometheus's API would send here: HTML, a redirect, broken JSON."""

    result = "unexpected"


class IncompleteAnswerError(UnexpectedAnswerError):
    """The server warns that samples are missing from its answer, as while a store behind it is away."""


class ClockError(UnexpectedAnswerError):
    """The values are of another time than ours, or may be; the error says what to do."""


def refuse_partial(query: str, warnings: Sequence[str]) -> None:
    """Raise IncompleteAnswerError if an answer has warnings that samples are missing."""
    if warnings:
        raise IncompleteAnswerError(query, "the answer may be partial", warnings[0])


class UnreadableForMatchersError(PrometheusError):
    """The configured matchers cannot be put into every selector of the query with certainty, so it was not sent."""

    result = "unreadable"

    def __init__(self, query: str, matchers: str, reason: str) -> None:
        super().__init__(
            query,
            _why_unsent(f"the matchers {matchers}", reason),
            public_cause=_why_unsent("the configured matchers", reason),
        )


def _why_unsent(matchers: str, reason: str) -> str:
    return (
        f"it was not sent, because {matchers} cannot be added to each of its selectors ({reason}): "
        "write it in another way"
    )


ERRORS_OF_SERVER = (PrometheusUnreachableError, AuthenticationRefusedError, UnexpectedAnswerError)
"""The errors of a server that cannot be asked, or of something in its place; the query is seldom at fault."""


def with_repair(error: PrometheusError, credentials: str = "check the credentials") -> str:
    """Return what a command that cannot go on says: the error, and what to do where that is certain.

    Where the server is at fault, the query is not named.
    """
    match error:
        case _ if error.repair:
            return f"{error.cause}: {error.repair}"
        case PrometheusUnreachableError():
            return f"{error.cause}: check the address of Prometheus, and whether it runs there"
        case AuthenticationRefusedError():
            return f"{error.cause}: {credentials}"
        case IncompleteAnswerError():
            return f"{error}: check the stores behind the address of Prometheus"
        case UnexpectedAnswerError() if not isinstance(error, ClockError):
            return f"{error}: check that the address is that of a Prometheus"
    return str(error)


def public_error_type(error_type: str) -> str:
    """Return the type that a server gives to its error, or `unknown` if that is not a type but may be any text."""
    return error_type if _ERROR_TYPE.fullmatch(error_type) else "unknown"


def shorten_message(text: str) -> str:
    """Return the text on one line of at most 200 characters, without its middle if it is longer."""
    line = " ".join(text.split())
    if len(line) <= _SHOWN_CHARACTERS:
        return line
    half = _SHOWN_CHARACTERS // 2
    return f"{line[:half]} … {line[-half:]}"
