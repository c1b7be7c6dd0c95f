"""A real Prometheus whose answers bear one more annotation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapter.foundation.sources.prometheus.queries.client import PrometheusClient

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer
    from adapter.foundation.sources.prometheus.answers.ranges import RangeAnswer

IGNORED = "PromQL info: ignored histogram in max aggregation (1:5)"


class AnnotatedClient(PrometheusClient):
    """Adds a warning to each answer of the server."""

    warning = IGNORED

    def instant(self, *args: Any, **options: Any) -> InstantAnswer:  # noqa: ANN401 - handed on as they are
        answer = super().instant(*args, **options)
        answer.warnings = (self.warning,)
        return answer

    def range(self, *args: Any, **options: Any) -> RangeAnswer:  # noqa: ANN401 - handed on as they are
        return replace(super().range(*args, **options), warnings=(self.warning,))
