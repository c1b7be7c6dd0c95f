"""Short ways to send queries with a client to a server that misbehaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient

ONE = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 92\r\n\r\n"
GIVE_UP_SECONDS = 0.4


class ClientOf(Protocol):
    def __call__(self, url: str, **options: Any) -> PrometheusClient: ...  # noqa: ANN401 - settings of any type


def ask(client: PrometheusClient, *, timeout_seconds: float = 10.0, limits: AnswerLimits | None = None) -> list[float]:
    answer = client.instant("up", timeout_seconds=timeout_seconds, limits=limits or AnswerLimits())
    return [sample.value for batch in answer.batches(UNPACED) for sample in batch]
