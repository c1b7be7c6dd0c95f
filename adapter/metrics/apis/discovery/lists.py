"""The lists of all metrics, prepared as bytes before they are requested.

kube-apiserver requests each list many times a minute, five times at once to check whether the API is available, and
marks the API unavailable if the answer is slow. So requests are answered with prepared bytes, plain or compressed. When
the metrics change, new lists are built in the background, slice by slice, and replace the old ones all at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.files.gzip_format import GzipWriter
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.foundation.web.http import Response
from adapter.foundation.web.rendering import GZIP_FROM_BYTES
from adapter.metrics.apis.discovery.groups import USAGE_RESOURCES
from adapter.metrics.apis.routing import CUSTOM, EXTERNAL, METRIC_GROUPS, RESOURCE, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.rulebook.model import Metric

_json = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class _Lists:
    catalogue: Catalogue
    responses: Mapping[tuple[str, str], Response]


class ResourceLists:
    """`APIResourceList` documents of one catalogue; `prepare` replaces them by those of another."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._lists = _Lists(catalogue, _responses(catalogue, UNPACED))

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue whose lists these are."""
        return self._lists.catalogue

    def get(self, group: str, version: str) -> Response:
        """Return the list of one group and version."""
        return self._lists.responses[group, version]

    def prepare(self, catalogue: Catalogue, pace: Pace) -> None:
        """Build the lists of this catalogue, unless it is the current one."""
        if self._lists.catalogue is not catalogue:
            self._lists = _Lists(catalogue, _responses(catalogue, pace))


def _responses(catalogue: Catalogue, pace: Pace) -> Mapping[tuple[str, str], Response]:
    entries = {CUSTOM: _custom_entries(catalogue.custom), EXTERNAL: _external_entries(catalogue.external)}
    responses = {(RESOURCE, version): Response(200, USAGE_RESOURCES) for version in VERSIONS[RESOURCE]}
    for group in METRIC_GROUPS:
        writers = [_Writer(group, version) for version in VERSIONS[group]]
        for part in pace.slices(entries[group]):
            joined = b",".join(part)
            for writer in writers:
                writer.add(joined)
        responses |= {(group, writer.version): writer.response() for writer in writers}
    return responses


def _custom_entries(metrics: tuple[Metric, ...]) -> Iterator[bytes]:
    """Yield the entries; all entries for one kind of object agree on whether it is namespaced.

    kube-apiserver folds the entries of a kind into one, and drops the whole version when they differ. They can, while a
    custom resource is replaced by one of another scope; then entries that disagree with the kind's first are left out.
    """
    scopes: dict[str, bool] = {}
    for metric in metrics:
        kind = metric.qualified.partition("/")[0]
        if scopes.setdefault(kind, metric.namespaced) == metric.namespaced:
            yield _entry(metric.qualified, b"MetricValueList", namespaced=metric.namespaced)


def _external_entries(metrics: tuple[Metric, ...]) -> Iterator[bytes]:
    for metric in metrics:
        yield _entry(metric.name, b"ExternalMetricValueList", namespaced=True)


def _entry(name: str, kind: bytes, *, namespaced: bool) -> bytes:
    """Return one resource; `get` is its only verb: others would make namespace controller and quota act on it."""
    return b'{"name":%b,"singularName":"","namespaced":%b,"kind":"%b","verbs":["get"]}' % (
        _json(name),
        b"true" if namespaced else b"false",
        kind,
    )


class _Writer:
    """A document that is written plain and compressed side by side, so that little work is left for its end."""

    def __init__(self, group: str, version: str) -> None:
        self.version = version
        self._plain: list[bytes] = []
        self._gzip = GzipWriter()
        self._separator = b""
        head = f'{{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"{group}/{version}","resources":['
        self._write(head.encode())

    def add(self, entries: bytes) -> None:
        """Append entries that are joined by commas already."""
        self._write(self._separator + entries)
        self._separator = b","

    def response(self) -> Response:
        """End the document and return it."""
        self._write(b"]}\n")
        # Python lets others run while it joins more than a MiB; appending to one long buffer would not.
        body = b"".join(self._plain)
        return Response(200, body, gzipped=self._gzip.end() if len(body) > GZIP_FROM_BYTES else None)

    def _write(self, data: bytes) -> None:
        self._plain.append(data)
        self._gzip.add(data)
