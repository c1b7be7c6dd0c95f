"""The spec of a MetricRule object: its keys, and the keys of a rule file that have no meaning in it."""

from __future__ import annotations

from typing import Any, Final

from adapter.foundation.documents.scalars import one_of
from adapter.foundation.documents.sections import Key, Section
from adapter.metrics.rulebook.model import METRIC_RULE, Api
from adapter.metrics.rulebook.parsing.rule_file import RESOURCES, RULE

GROUP: Final = "tidewatch.io"
VERSION: Final = "v1alpha1"
PLURAL: Final = "metricrules"

HAS_NO_MEANING: Final = {
    "backend": "objects are answered by the Prometheus of --prometheus-url",
    "foreignNamespaces": "the queries of an object never return samples of another namespace",
    "holdSilent": "series that fall silent are held for half an hour: exclude one in `metricsQuery` to let it go",
}
"""Keys of a rule that an object must not have, and why."""
NOT_NAMESPACED: Final = "namespaced"
"""Key of `resources` that an object must not have."""


def _section(name: str, *keys: Key) -> Section[dict[str, Any]]:
    return Section(name, dict, keys)


_RESOURCES: Final = _section("resources", *(key for key in RESOURCES.keys if key.key != NOT_NAMESPACED))


def _key_of_object(key: Key) -> Key:
    """Return a rule's key as objects have it; they cannot choose the namespace label, which is the administrator's."""
    if key.key != "resources":
        return key
    doc = "Which labels hold the names of which objects; that of the namespace is known without being written."
    return Key("resources", _RESOURCES, doc)


RULE_OF_OBJECT: Final = _section(
    "spec.rule", *(_key_of_object(key) for key in RULE.keys if key.key not in HAS_NO_MEANING)
)
SPEC: Final = _section(
    "spec",
    Key("api", one_of((Api.CUSTOM.value, Api.EXTERNAL.value), "an API"), "API that serves the metric.", "custom"),
    Key("rule", RULE_OF_OBJECT, "One rule, in the language of prometheus-adapter's rule files.", "{seriesQuery: …}"),
)


def rule_object_text(namespace: str, name: str) -> str:
    """Return the name of an object in messages: `MetricRule shop/web`."""
    return f"{METRIC_RULE} {namespace}/{name}"
