"""The keys of a rule file: the readers take the keys' names from here, and the JSON Schema takes their types.

Only the readers know what one key requires of another, and whether a text is a valid pattern, template or query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from adapter.foundation.documents.scalars import BOOLEAN, TEXTS_MAY_BE_EMPTY, duration, one_of
from adapter.foundation.documents.sections import Key, Section, mapping_of
from adapter.foundation.documents.shapes import ListOf, OneOf, Scalar, Schema
from adapter.foundation.documents.tree import MappingNode, ScalarNode
from adapter.foundation.sources.prometheus.backends.backend_settings import BACKEND
from adapter.metrics.rulebook.model import ForeignNamespaces

RULES: Final = "rules"
EXTERNAL_RULES: Final = "externalRules"
RESOURCE_RULES: Final = "resourceRules"
BACKENDS: Final = "prometheus"

_ONLY_ZERO: Final = {"minimum": 0, "maximum": 0}
"""The only number that is a duration; all other durations are texts, since only zero needs no unit."""
_QUANTITY: Final = r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?"


def _text(schema: Schema) -> Scalar[str]:
    return Scalar("a string", "write a string", str, schema)


_REQUIRED_TEXT: Final = _text({"type": ["string", "number", "boolean"], "pattern": r"\S"})
_STAND_IN: Final = _text({"type": ["string", "number"], "pattern": f"^{_QUANTITY}$"})
_ON_NO_DATA: Final = _text({"type": ["string", "number"], "pattern": f"^(error|empty|{_QUANTITY})$"})
_WINDOW: Final = _text({"type": ["string", "integer"], "pattern": "^(0|([0-9]+(ms|[smhdwy]))+)$"} | _ONLY_ZERO)
_FOREIGN: Final = one_of((*map(str, ForeignNamespaces), ""), "a policy for samples of other namespaces")


def _section(name: str, *keys: Key) -> Section[dict[str, Any]]:
    make: Callable[..., dict[str, Any]] = dict
    return Section(name, make, keys)


FILTER: Final = _section(
    "a filter",
    Key("is", TEXTS_MAY_BE_EMPTY, "Regular expression of RE2; only series whose names match it are taken."),
    Key("isNot", TEXTS_MAY_BE_EMPTY, "Regular expression of RE2; series whose names match it are left out."),
)
GROUP_RESOURCE: Final = _section(
    "an override",
    Key("group", TEXTS_MAY_BE_EMPTY, "API group; empty for the core group."),
    Key("resource", _REQUIRED_TEXT, "Name of the resource, in the singular or the plural.", "pod"),
)
RESOURCES: Final = _section(
    "resources",
    Key("template", TEXTS_MAY_BE_EMPTY, "Template of the label that holds an object's name, by group and resource."),
    Key("overrides", mapping_of("overrides", TEXTS_MAY_BE_EMPTY, GROUP_RESOURCE), "Resources by their labels."),
    Key("namespaced", BOOLEAN, "Whether an external metric belongs to a namespace."),
)
NAME: Final = _section(
    "name",
    Key("matches", TEXTS_MAY_BE_EMPTY, "Regular expression of RE2 for the names of series."),
    Key("as", TEXTS_MAY_BE_EMPTY, "The metric's name, which may refer to groups of `matches`, such as ${1}_rate."),
)
NO_DATA_VALUE: Final = _section("onNoData", Key("value", _STAND_IN, "The value that is served.", "0"))
BACKEND_NAME: Final = Key("backend", TEXTS_MAY_BE_EMPTY, "Name of the server in `prometheus` that the rule asks.")
POLICY: Final = (
    Key(
        "onNoData",
        OneOf({ScalarNode: _ON_NO_DATA, MappingNode: NO_DATA_VALUE}),
        "The answer where Prometheus has no sample: error, empty, or a value.",
    ),
    Key("maxSampleAge", duration(1.0), "Age from which a sample no longer counts."),
    Key("holdSilent", duration(), "Time for which a series that fell silent keeps an external metric from a value."),
    Key("refresh", duration(1.0), "Time between two refreshes of the rule's queries."),
    Key("window", duration(1.0), "The window that answers state, in whole seconds."),
    Key("foreignNamespaces", _FOREIGN, "What samples of another namespace than the request's are: error or allow."),
)
_SELECTION: Final = (
    Key("seriesQuery", _REQUIRED_TEXT, "Selector of the series to discover.", "http_requests_total"),
    Key("seriesFilters", ListOf(FILTER), "Filters of the names of series."),
)
_METRICS: Final = (
    Key("name", NAME, "How metrics are named; without it, like their series."),
    Key(
        "metricsQuery",
        _REQUIRED_TEXT,
        "Template of the query for a metric's values.",
        "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})",
    ),
    BACKEND_NAME,
    *POLICY,
)
RULE: Final = _section(
    "a rule",
    *_SELECTION,
    Key("resources", RESOURCES, "Which labels hold the names of which objects.", "{template: <<.Resource>>}"),
    *_METRICS,
)
EXTERNAL_RULE: Final = _section(
    "an external rule",
    *_SELECTION,
    Key("resources", RESOURCES, "Which label holds the namespace."),
    *_METRICS,
)
USAGE: Final = _section(
    "a resource rule",
    BACKEND_NAME,
    Key("containerQuery", TEXTS_MAY_BE_EMPTY, "Template of the query for what containers use."),
    Key("nodeQuery", TEXTS_MAY_BE_EMPTY, "Template of the query for what nodes use."),
    Key("resources", RESOURCES, "Which labels hold the names of namespaces, pods and nodes."),
    Key("containerLabel", TEXTS_MAY_BE_EMPTY, "Label that holds the container's name."),
)
USAGES: Final = _section(
    RESOURCE_RULES,
    Key("cpu", USAGE, "CPU, in cores."),
    Key("memory", USAGE, "Memory, in bytes."),
    Key("window", _WINDOW, "The window that answers state, such as 1m."),
)
RULE_FILE: Final = _section(
    "the file",
    Key(BACKENDS, ListOf(BACKEND), "Prometheus servers that rules may ask instead of the one of the flags."),
    Key(RULES, ListOf(RULE), "Rules for the custom metrics API."),
    Key(EXTERNAL_RULES, ListOf(EXTERNAL_RULE), "Rules for the external metrics API."),
    Key(RESOURCE_RULES, USAGES, "Rules for the resource metrics API (metrics.k8s.io)."),
)
