"""This project's answers to the oracle's questions, in the form of the oracle's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Final

from adapter.foundation.documents.load import DocumentError, Node, load_documents, problems_within
from adapter.foundation.objects.durations import (
    DurationError,
    format_go_duration,
    go_nanoseconds,
    parse_prometheus_duration,
)
from adapter.foundation.objects.names import is_namespace_name, is_object_name, label_key_problem, label_value_problem
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.objects.regex import BadPatternError, Pattern, compile_pattern, quote_pattern
from adapter.foundation.objects.selectors import SelectorError, parse_selector
from adapter.foundation.promql.quoting import go_quoted, is_label_name, is_metric_name
from adapter.metrics.rulebook.gotemplate import Struct, TemplateError, execute, parse_template
from tests.e2e.oracle.asking import Answer, Question, Refused
from tests.support.naming import expand

_REFUSALS: Final = (BadPatternError, DocumentError, DurationError, QuantityError, SelectorError, TemplateError)
_INT64_MAX: Final = 2**63 - 1
_EXACT_SECONDS: Final = 2**52
_Ours = Callable[[Question], Answer]


def _answers(function: _Ours) -> _Ours:
    """Turn the errors by which our functions refuse a text into answers; any other error fails the test."""

    @wraps(function)
    def answer(asked: Question) -> Answer:
        try:
            return function(asked)
        except _REFUSALS as e:
            return Refused(str(e))

    return answer


@_answers
def expanded(asked: Question) -> Answer:
    name = expand(compile_pattern(asked["pattern"]), asked["template"], asked["text"])
    return {"matched": name is not None, "name": name or ""}


@_answers
def searched(asked: Question) -> Answer:
    pattern = compile_pattern(asked["pattern"])
    return {"groups": [_groups(pattern, text) for text in asked["texts"]], "names": _names(pattern)}


def _groups(pattern: Pattern, text: str) -> list[str | None] | None:
    match = pattern.search(text)
    assert (match is not None) is pattern.found_in(text)
    return list(match.groups) if match else None


def _names(pattern: Pattern) -> list[str]:
    names = [""] * (pattern.group_count + 1)
    for name, number in pattern.names:
        names[number] = name
    return names


@_answers
def matched(asked: Question) -> Answer:
    pattern = compile_pattern(f"(?s:{asked['pattern']})")
    return [pattern.matches_all_of(text) for text in asked["texts"]]


def quoted(asked: Question) -> Answer:
    return {"quoted": go_quoted(asked["text"]), "pattern": quote_pattern(asked["text"])}


@_answers
def rendered(asked: Question) -> Answer:
    data = {**asked["data"], "GroupBySlice": tuple(asked["data"]["GroupBySlice"])}
    return execute(parse_template(asked["text"]), Struct(data))


@_answers
def labelled(asked: Question) -> Answer:
    return execute(parse_template(asked["text"]), Struct({"Group": asked["group"], "Resource": asked["resource"]}))


@_answers
def measured(asked: Question) -> Answer:
    quantity, other = parse_quantity(asked["text"]), parse_quantity(asked["other"])
    return {
        "canonical": str(quantity),
        "format": str(quantity.format),
        "nanos": quantity.nanos,
        "milli": quantity.milli_value() if abs(quantity.nanos) <= _INT64_MAX * 10**6 else None,
        "compared": (quantity > other) - (quantity < other),
        "sum": str(quantity + other),
    }


@_answers
def selected(asked: Question) -> Answer:
    selector = parse_selector(asked["text"])
    return {
        "canonical": str(selector),
        "matches": [selector.matches(labels) for labels in asked["labels"]],
        "requirements": [(one.key, str(one.operator), list(one.values)) for one in selector.requirements],
    }


@_answers
def lasted(asked: Question) -> Answer:
    nanoseconds = go_nanoseconds(asked["text"])
    exact = abs(nanoseconds) < _EXACT_SECONDS
    return {"nanoseconds": nanoseconds, "printed": format_go_duration(nanoseconds / 10**9) if exact else None}


@_answers
def lasted_in_prometheus(asked: Question) -> Answer:
    # Its unit is the millisecond, of which a float of seconds holds each.
    return {"nanoseconds": round(parse_prometheus_duration(asked["text"]) * 1000) * 10**6}


def named(asked: Question) -> Answer:
    text = asked["text"]
    return {
        "namespace": is_namespace_name(text),
        "label_key": label_key_problem(text) is None,
        "label_value": label_value_problem(text) is None,
        "path_segment": is_object_name(text),
        "metric_name": is_metric_name(text),
        "label_name": is_label_name(text),
    }


@_answers
def read(asked: Question) -> Answer:
    """Return a rule file as prometheus-adapter's types hold it; absent fields have their type's empty value."""
    root = load_documents(asked["text"], "rules.yaml").root
    for problem in problems_within(root) if root else ():
        raise DocumentError(problem)
    return _section(root, rules=_list_of(_rule), externalRules=_list_of(_rule))


def _section(node: Node | None, **fields: Callable[[Node | None], Any]) -> dict[str, Any]:
    """Return the fields of a mapping as their readers return them; raises DocumentError for unknown keys."""
    mapping = node.mapping() if node and not node.is_null else None
    for entry in mapping.unknown(fields) if mapping else ():
        raise entry.key.wrong_kind("a known key")
    return {name: reader(mapping.get(name) if mapping else None) for name, reader in fields.items()}


def _list_of(reader: Callable[[Node | None], Any]) -> Callable[[Node | None], list[Any]]:
    return lambda node: [reader(item) for item in node.sequence()] if node else []


def _text(node: Node | None) -> str:
    return node.text() if node and not node.is_null else ""


def _boolean(node: Node | None) -> bool | None:
    return node.boolean() if node and not node.is_null else None


def _rule(node: Node | None) -> dict[str, Any]:
    return _section(
        node,
        seriesQuery=_text,
        seriesFilters=_list_of(lambda item: _section(item, **{"is": _text, "isNot": _text})),
        resources=lambda inner: _section(inner, template=_text, overrides=_overrides, namespaced=_boolean),
        name=lambda inner: _section(inner, **{"matches": _text, "as": _text}),
        metricsQuery=_text,
    )


def _overrides(node: Node | None) -> dict[str, Any]:
    entries: Iterable[Any] = node.mapping().entries if node else ()
    return {entry.name: _section(entry.value, group=_text, resource=_text) for entry in entries}
