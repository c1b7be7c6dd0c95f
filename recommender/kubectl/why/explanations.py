"""Rule and query of a metric, from the adapter itself: the metrics APIs do not carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.commands.explain.server import PATH_ON_SERVER, server_client
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.metrics.readings.explain.explanation import NoExplanationError, explanation_of
from recommender.kubectl.reader import NotRead
from recommender.kubectl.why.observed import EXTERNAL, RESOURCE

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues
    from adapter.metrics.readings.explain.explanation import Explanation
    from recommender.kubectl.why.observed import AskedMetric

_APIS: Final = {EXTERNAL: "external", RESOURCE: "resource"}


def explanation(values: FlagValues, asked: AskedMetric, namespace: str) -> Explanation | NotRead:
    """Return why the metric has, or lacks, a value, from the adapter that `--server` names."""
    parameters = {
        "metric": asked.metric,
        "namespace": namespace,
        "api": _APIS.get(asked.api, "custom"),
        "object": asked.described,
        "selector": asked.selector,
    }
    try:
        answer = server_client(values).get(PATH_ON_SERVER, {name: text for name, text in parameters.items() if text})
        return explanation_of(answer)
    except (UsageError, KubernetesError) as error:
        return NotRead(f"rule and query of {asked.metric}: {values.text('server')}: {error}")
    except NoExplanationError:
        return NotRead(f"rule and query of {asked.metric}: --server does not name a tidewatch-adapter")
