"""The words of failed answers. They start as prometheus-adapter's do, which runbooks search for, and then say why."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.apis.status import ApiError, code_of
from adapter.readings.errors import ReadingError

if TYPE_CHECKING:
    from collections.abc import Iterator


def not_found(what: str, why: str) -> ApiError:
    """Return the error for a metric that is not there; `what` is such as `metric M for pods`."""
    return ApiError(404, f"the server could not find the {what}: {why}")


def no_data(what: str) -> ApiError:
    """Return the error for an answer without a value, where that is to be an error (`--on-no-data=error`)."""
    return not_found(what, "there is no sample for it in Prometheus")


@contextmanager
def fetching(what: str) -> Iterator[None]:
    """Turn a reading that cannot be given into the ApiError that says so."""
    try:
        yield
    except ReadingError as e:
        code = code_of(e)
        if code == 404:
            raise not_found(what, e.message) from e
        raise ApiError(code, f"unable to fetch the {what}: {e.message}") from e
