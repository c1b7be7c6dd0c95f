"""Error messages. They begin like those of prometheus-adapter, which runbooks search for, and then say why.

Each comes with the error that prometheus-adapter returns (`ApiError.former`), for `--compatibility`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from adapter.metrics.apis.hints.hints import more
from adapter.metrics.apis.status import ApiError, code_of
from adapter.metrics.readings.errors import (
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
from adapter.metrics.rulebook.model import Metric, OnNoData

_NOT_FETCHED = ApiError(500, "Internal error occurred: unable to fetch metrics")
NOT_LISTED = ApiError(500, "Internal error occurred: unable to list matching resources")
"""The error of prometheus-adapter if objects cannot be listed."""
_FORMER: Mapping[type[ReadingError], ApiError] = {
    AnswerTooOldError: _NOT_FETCHED,
    QueryRefusedByPrometheusError: _NOT_FETCHED,
    SourceSlowError: _NOT_FETCHED,
    SourceUnreachableError: _NOT_FETCHED,
    ObjectsNotKnownError: NOT_LISTED,
}
"""The errors that prometheus-adapter returns where it fails for the same reason."""


def not_found(what: str, why: str, *, formerly: str | None = None, former: ApiError | None = None) -> ApiError:
    """Return the error for a metric that does not exist; `what` describes it, as in `metric M for pods`.

    `formerly` is prometheus-adapter's description of the metric, and `former` its error, where they differ.
    """
    former = former or ApiError(404, f"the server could not find the {what if formerly is None else formerly}")
    return ApiError(404, f"the server could not find the {what}: {why}", former=former)


def not_known(what: str, why: str, *, formerly: str) -> ApiError:
    """Return the error for a metric that may exist, but whose series could not be looked up yet.

    `formerly` is prometheus-adapter's description of the metric; prometheus-adapter says that it does not exist.
    """
    former = ApiError(404, f"the server could not find the {formerly}")
    return ApiError(503, f"unable to fetch the {what}: {why}", former=former)


def empty_is_error(metric: Metric, *, otherwise: bool) -> bool:
    """Return whether an answer without values is an error, as the rule (`onNoData`) or else the flag says.

    A rule that sets a value for missing data does not decide this: if there is no value then, something else is wrong.
    """
    wanted = metric.rule.policy.on_no_data
    return wanted is OnNoData.ERROR or (otherwise and wanted is not OnNoData.EMPTY)


def no_data(what: str, command: str = "") -> ApiError:
    """Return the error for an answer without values (`--on-no-data=error`)."""
    return not_found(what, f"there is no sample for it in Prometheus{more(command)}")


@contextmanager
def translate_reading_errors(what: str, command: str = "", *, beside: str = "") -> Iterator[None]:
    """Turn a ReadingError into the ApiError that states it.

    `command` explains more. The error names it if the metric has no value and neither the request nor Prometheus is at
    fault. `beside` is added to the message if no value is found.
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
