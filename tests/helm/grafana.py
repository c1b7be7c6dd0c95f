"""The dashboards as Grafana imports them, and their queries as Grafana sends them."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from helm.tidewatch.dashboards.texts import DASHBOARDS, text_of
from tests.helm.predicting import PREDICTED_SECONDS
from tests.helm.workloads import KIND, NAME, NAMESPACE, RECOMMENDATION

if TYPE_CHECKING:
    from collections.abc import Iterator

_ALL: Final = {
    "namespace": ".*",
    "job": ".*",
    "recommendation": ".*",
    "__rate_interval": "8s",
    "horizon": f"{PREDICTED_SECONDS}s",
    "resource": "cpu",
    "window": "15m",
}
_OF_WORKLOAD: Final = {"namespace": NAMESPACE, "name": NAME, "kind": KIND, "recommendation": RECOMMENDATION}
_VARIABLE: Final = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")


@cache
def model_of(name: str) -> dict[str, Any]:
    """Return a dashboard as decoded JSON."""
    model: dict[str, Any] = json.loads(text_of(DASHBOARDS[name]()))
    return model


def panels_of(name: str) -> Iterator[dict[str, Any]]:
    """Yield the panels in the order shown, including those of collapsed rows but not the rows."""
    for panel in model_of(name)["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def as_sent(name: str, expr: str) -> str:
    """Return a query of a dashboard as Grafana sends it, with every variable at its default."""
    values = _ALL | (_OF_WORKLOAD if name == "workload" else {})
    return _VARIABLE.sub(lambda found: values[found[1]], expr)


def queries(name: str) -> dict[str, str]:
    """Return the queries of a dashboard by panel and letter, and those of all its annotations."""
    of_panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels_of(name)
        for target in panel["targets"]
    }
    of_annotations = {
        f"annotation {one['name']}": one["expr"].removesuffix(" > 0") for one in model_of(name)["annotations"]["list"]
    }
    return {what: as_sent(name, expr) for what, expr in (of_panels | of_annotations).items()}
