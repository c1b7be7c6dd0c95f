"""Reads Kubernetes objects from YAML, event by event in slices of the pace, and one item of a List at a time.

The loaders of PyYAML block the interpreter for a whole document: 0.5 s for 1,000 pods, during which no request is
answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import yaml

from adapter.foundation.sources.yaml_scalars import scalar_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.time.pace import Pace

_EVENTS_A_SLICE = 150
"""Number of events (starts and ends of collections, scalars) that take about half a millisecond to read and resolve."""

_MOST_ALIASED = 1_000_000
"""The most values to which a document's aliases may expand; a few lines of nested aliases can expand to billions."""
_DEEPEST = 100
"""Deepest level of nesting. The schemas of CustomResourceDefinitions have about forty."""

YamlValue: TypeAlias = "str | bool | int | float | list[YamlValue] | dict[str, YamlValue] | None"


class YamlObjectsError(ValueError):
    """The text is not YAML, or not an object or List of objects.

    Attributes:
        line: from 1; None if it is not known.
    """

    def __init__(self, reason: str, line: int | None) -> None:
        """`reason` is the text of `str()`, without the line."""
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class YamlObject:
    """One object, as nested dictionaries."""

    content: Mapping[str, YamlValue]
    line: int
    """The first line of the object in the file, counted from 1."""
    list_kind: str = ""
    """Kind of the list around it; empty if there is no list, or if its kind comes after its items."""
    list_api_version: str = ""


def read_yaml_objects(body: bytes, pace: Pace) -> Iterator[YamlObject]:
    """Yield the objects of all documents in the text, in order. May raise YamlObjectsError at any point."""
    try:
        yield from _Reader(body, pace).objects()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlObjectsError(f"not YAML: {error.problem}", mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise YamlObjectsError(f"not YAML: {' '.join(str(error).split())}", None) from error


class _Reader:
    def __init__(self, body: bytes, pace: Pace) -> None:
        # If PyYAML was built with libyaml, its parser is used, which is ten times faster.
        self._loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(body)
        self._events = self._paced_events(pace)
        self._anchors: dict[str, tuple[YamlValue, int]] = {}
        """The content of each anchor by its name, and the number of values in it."""
        self._values = 0
        """How many values have been read, including those of aliases."""
        self._aliased = 0
        """How many values of this document came from aliases."""
        self._depth = 0

    def objects(self) -> Iterator[YamlObject]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                self._aliased = 0
                yield from self._document(next(self._events))

    def _paced_events(self, pace: Pace) -> Iterator[yaml.Event]:
        source = self._parsed_events()
        while True:
            with pace.slice():
                part = list(islice(source, _EVENTS_A_SLICE))
            if not part:
                return
            yield from part

    def _parsed_events(self) -> Iterator[yaml.Event]:
        while self._loader.check_event():
            yield self._loader.get_event()

    def _document(self, event: yaml.Event) -> Iterator[YamlObject]:
        """Yield the object of a document, or the items of its List one by one."""
        if isinstance(event, yaml.ScalarEvent) and self._scalar(event) is None:
            # An empty document, between two `---`.
            return
        if not isinstance(event, yaml.MappingStartEvent):
            raise YamlObjectsError("expected an object or a List of objects", _line(event))
        content: dict[str, YamlValue] = {}
        is_list = False
        for key, value in self._pairs(event):
            if key == "items" and isinstance(value, yaml.SequenceStartEvent):
                is_list = True
                kind, version = str(content.get("kind") or ""), str(content.get("apiVersion") or "")
                for item, line in self._items():
                    yield YamlObject(item, line, kind, version)
                content[key] = None
            else:
                content[key] = self._value(value)
        if not is_list:
            yield YamlObject(content, _line(event))

    def _items(self) -> Iterator[tuple[dict[str, YamlValue], int]]:
        for event in self._elements():
            item = self._value(event)
            if not isinstance(item, dict):
                raise YamlObjectsError("expected an object in the items of a List", _line(event))
            yield item, _line(event)

    def _value(self, event: yaml.Event) -> YamlValue:
        if isinstance(event, yaml.AliasEvent):
            return self._aliased_value(event)
        before = self._values
        self._values += 1
        value: YamlValue
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        else:
            self._depth += 1
            if self._depth > _DEEPEST:
                raise YamlObjectsError(f"more than {_DEEPEST} levels of nesting", _line(event))
            if isinstance(event, yaml.SequenceStartEvent):
                value = [self._value(element) for element in self._elements()]
            else:
                value = {key: self._value(each) for key, each in self._pairs(event)}
            self._depth -= 1
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = value, self._values - before
        return value

    def _aliased_value(self, event: yaml.AliasEvent) -> YamlValue:
        if event.anchor not in self._anchors:
            raise YamlObjectsError(f"alias *{event.anchor} has no anchor before it", _line(event))
        value, size = self._anchors[event.anchor]
        self._values += size
        self._aliased += size
        if self._aliased > _MOST_ALIASED:
            message = f"the aliases up to here expand to more than {_MOST_ALIASED} values"
            raise YamlObjectsError(message, _line(event))
        return value

    def _scalar(self, event: yaml.ScalarEvent) -> YamlValue:
        tag, explicit = event.tag, True
        if tag is None or tag == "!":
            tag, explicit = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit), False
        try:
            return scalar_value(event.value, tag, explicit=explicit)
        except ValueError as error:
            raise YamlObjectsError(str(error), _line(event)) from error

    def _elements(self) -> Iterator[yaml.Event]:
        """Yield the event that starts each element, up to the end of the sequence."""
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield event

    def _pairs(self, start: yaml.Event) -> Iterator[tuple[str, yaml.Event]]:
        """Yield each key of the mapping with the event that starts its value, up to its end."""
        seen: set[str] = set()
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            if not isinstance(event, yaml.ScalarEvent):
                raise YamlObjectsError("a key that is not a scalar", _line(start))
            if event.value in seen:
                raise YamlObjectsError(f"the key {event.value!r} is repeated", _line(event))
            seen.add(event.value)
            yield event.value, next(self._events)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
