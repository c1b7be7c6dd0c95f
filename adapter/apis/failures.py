"""The words of failed answers. They start as prometheus-adapter's do, which runbooks search for, and then say why.

Beside each stands what prometheus-adapter says (`ApiError.former`), for those who want to have it back.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.apis.hints.hints import more
from adapter.apis.status import ApiError, code_of
from adapter.readings.errors import (
    AnswerTooOldError,
    ForeignNamespaceError,
    NoDataUncertainError,
    NoObjectsMatchError,
    ObjectsNotKnownError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SampleTooOldError,
    SourceSlowError,
    SourceUnreachableError,
)
from adapter.rulebook.model import OnNoData

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.rulebook.model import Metric

_NOT_FETCHED = ApiError(500, "Internal error occurred: unable to fetch metrics")
NOT_LISTED = ApiError(500, "Internal error occurred: unable to list matching resources")
"""What prometheus-adapter says where objects cannot be listed."""
_FORMER: Mapping[type[ReadingError], ApiError] = {
    AnswerTooOldError: _NOT_FETCHED,
    QueryRefusedByPrometheusError: _NOT_FETCHED,
    SourceSlowError: _NOT_FETCHED,
    SourceUnreachableError: _NOT_FETCHED,
    ObjectsNotKnownError: NOT_LISTED,
}
"""What prometheus-adapter says of readings that it could not give either."""


def not_found(what: str, why: str, *, formerly: str | None = None, former: ApiError | None = None) -> ApiError:
    """Return the error for a metric that is not there; `what` is such as `metric M for pods`.

    `formerly` is what prometheus-adapter calls it, where that is something else; `former` what it says, where that is
    another error.
    """
    former = former or ApiError(404, f"the server could not find the {what if formerly is None else formerly}")
    return ApiError(404, f"the server could not find the {what}: {why}", former=former)


def empty_is_error(metric: Metric, *, otherwise: bool) -> bool:
    """Return whether an answer without a value is to be an error: as the rule says (`onNoData`), or else the flag.

    Where the rule gives a value for no data and there is none, something else is wrong, of which it says nothing.
    """
    wanted = metric.rule.policy.on_no_data
    return wanted is OnNoData.ERROR or (otherwise and wanted is not OnNoData.EMPTY)


def no_data(what: str, command: str = "") -> ApiError:
    """Return the error for an answer without a value, where that is to be an error (`--on-no-data=error`)."""
    return not_found(what, f"there is no sample for it in Prometheus{more(command)}")


@contextmanager
def fetching(what: str, command: str = "", *, beside: str = "") -> Iterator[None]:
    """Turn a reading that cannot be given into the ApiError that says so.

    `command` are the arguments of `explain` that tell more, where it is the metric that has no value and not the
    request or Prometheus that is at fault. `beside` is what else to say of a value that is not found.
    """
    try:
        yield
    except ReadingError as e:
        code = code_of(e)
        if code == 404:
            raise not_found(
                what, f"{e.public_message}{beside}{'' if isinstance(e, NoObjectsMatchError) else more(command)}"
            ) from e
        of_metric = code == 500 or isinstance(e, SampleTooOldError | NoDataUncertainError | ForeignNamespaceError)
        message = f"unable to fetch the {what}: {e.public_message}{more(command) if of_metric else ''}"
        raise ApiError(code, message, former=_former(e)) from e


def _former(error: ReadingError) -> ApiError | None:
    return next((_FORMER[kind] for kind in type(error).__mro__ if kind in _FORMER), None)
