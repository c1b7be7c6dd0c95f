"""Requests of containers as metrics, as JSON, as text and as rows of the page (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from adapter.foundation.web.metric_text import label
from recommender.decisions.texts.columns import GAP, columns
from recommender.kinds.kind import RECOMMENDED_RESOURCES
from recommender.kinds.resources.container_requests import RequestSize, RequestSizes, in_units, quantity_of_request
from recommender.outputs.metric_text import Samples, recommendation_label, target_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recommender.decisions.record import Record


class RequestRow(NamedTuple):
    """One request in the form that people read."""

    container: str
    resource: str
    now: str
    target: str
    lower: str
    upper: str
    note: str


def request_samples(sized: Iterable[tuple[Record, RequestSizes]]) -> dict[str, Samples]:
    """Return the samples of the family, in cores and bytes; `sized` are the records that have a valid value."""
    samples: Samples = {}
    for record, found in sized:
        target = target_labels(record.each)
        for container, sizes in found.by_container.items():
            for resource, size in sizes.items():
                for bound, amount in _bounds(size):
                    labels = f"{label('bound', bound)},{label('container', container)},{recommendation_label(record)}"
                    value = in_units(resource, amount)
                    samples.setdefault(f"{labels},{label('resource', resource)},{target}", value)
    return {RECOMMENDED_RESOURCES: samples}


def _bounds(size: RequestSize) -> Iterator[tuple[str, int]]:
    """Yield the values that can be followed; the bounds of a request that stays unchanged are no advice."""
    if size.target is None:
        return
    yield "target", size.target
    if not size.held:
        yield "lower", min(size.lower, size.target)
        yield "upper", max(size.upper, size.target)


def request_keys(found: RequestSizes) -> dict[str, dict[str, Mapping[str, str]]]:
    """Return the requests and their details by container, each by resource."""
    return {
        container: {
            "requests": _quantities({resource: size.target for resource, size in sizes.items()}),
            "lower": _quantities({resource: dict(_bounds(size)).get("lower") for resource, size in sizes.items()}),
            "upper": _quantities({resource: dict(_bounds(size)).get("upper") for resource, size in sizes.items()}),
            "current": _quantities({resource: size.current for resource, size in sizes.items()}),
            "held": {resource: size.held for resource, size in sizes.items() if size.held},
        }
        for container, sizes in found.by_container.items()
    }


def _quantities(amounts: Mapping[str, int | None]) -> dict[str, str]:
    return {
        resource: quantity_of_request(resource, amount) for resource, amount in amounts.items() if amount is not None
    }


def request_rows(record: Record) -> tuple[RequestRow, ...]:
    """Return a row for each container and resource."""
    if not isinstance(record.details, RequestSizes):
        return ()
    return tuple(
        RequestRow(
            container,
            resource,
            _amount_text(resource, size.current),
            _amount_text(resource, size.target),
            _amount_text(resource, dict(_bounds(size)).get("lower")),
            _amount_text(resource, dict(_bounds(size)).get("upper")),
            size.held,
        )
        for container, sizes in record.details.by_container.items()
        for resource, size in sizes.items()
    )


def request_lines(records: Sequence[Record], width: int | None) -> Iterable[str]:
    """Return the table of the requests of some targets; for a target without requests, it has the reason."""
    rows = [("TARGET", "STATUS", "CONTAINER", "RESOURCE", "NOW", "TARGET", "LOWER", "UPPER", "NOTE")]
    for record in records:
        name = "" if record.each is None else f"{record.each.namespace}/{record.each.name}"
        found = request_rows(record)
        rows += [
            (name, record.status.value, *row[:6], row.note or "")
            for row in found
        ] or [(name, record.status.value, "-", "-", "-", "-", "-", "-", record.message)]  # fmt: skip
    return columns(rows, width, indent=GAP)


def _amount_text(resource: str, amount: int | None) -> str:
    return "-" if amount is None else quantity_of_request(resource, amount)
