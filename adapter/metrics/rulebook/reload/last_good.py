"""Keeps the last good version of a rule in use after a change broke it (pure).

`matching_entries` decides, within one list of one file, which former rule a refused entry was. A rule that is in no
list any more was removed on purpose and must not return in place of another. A refused entry without a partner had no
good version, or it is unknown which rule it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.model import Api, RefusedRule, ResourceRule, Rule, Rulebook
from adapter.metrics.rulebook.parsing.refused import stated_name
from adapter.metrics.rulebook.reload.matching_entries import Entry, ListMatching, literal_name

_ListOfFile: TypeAlias = "tuple[str, Api]"


@dataclass(frozen=True, slots=True)
class Retention:
    """A rulebook in which last good versions stand in for refused rules."""

    rulebook: Rulebook
    unsure: tuple[RefusedRule, ...] = ()
    """Refused rules that may have a last good version, although it is unknown which removed rule that would be."""


def retained_in(parsed: Rulebook, former: Rulebook) -> Retention:
    """Return what is served after a change: the parsed rules, and the last good versions of refused ones.

    `former` is the rulebook that was served until now.
    """
    parsed = _with_last_window(parsed, former)
    if not parsed.refused:
        return Retention(parsed)
    before = _lists(former)
    kept: list[Rule] = []
    retained: dict[str, frozenset[str]] = {}
    unsure: list[RefusedRule] = []
    newer = _Newer(former, parsed)
    for place, entries in _lists(parsed).items():
        matching = ListMatching(before.get(place, ()), entries)
        unsure += matching.unsure()
        for was, is_now in matching.pairs():
            if was.good is not None and is_now.refused is not None:
                kept.append(replace(was.good, id=is_now.id, line=is_now.refused.line))
                retained[is_now.id] = newer.since(was.id)
    resources = _kept_resources(parsed, former)
    retained |= {rule.id: frozenset() for rule in resources}
    rules = sorted((*parsed.rules, *kept), key=_place) if kept else parsed.rules
    resource = replace(parsed.resource, rules=(*parsed.resource.rules, *resources)) if resources else parsed.resource
    return Retention(replace(parsed, rules=tuple(rules), resource=resource, retained=retained), tuple(unsure))


def _with_last_window(parsed: Rulebook, former: Rulebook) -> Rulebook:
    """Return the rulebook with the former window, if the files state one that cannot be read."""
    if all(finding.code != Code.BAD_WINDOW for finding in parsed.findings):
        return parsed
    return replace(parsed, resource=replace(parsed.resource, window_seconds=former.resource.window_seconds))


def lost_list(parsed: Rulebook, former: Rulebook) -> Finding | None:
    """Return the error by which a whole list of rules may have vanished, such as a misspelt `externalRules`.

    None if no list vanished from a file that has an error outside its rules.
    """
    vanished = {file for file, _ in _files_and_apis(former) - _files_and_apis(parsed)}
    errors = (finding for finding in parsed.findings if finding.rule is None and finding.severity is Severity.ERROR)
    # A resource rule that another file defines now has not vanished.
    lost = (error for error in errors if error.file in vanished and error.code != Code.REPEATED_RESOURCE_RULE)
    return next(lost, None)


def _files_and_apis(rulebook: Rulebook) -> set[_ListOfFile]:
    """Return which files have rules of which API, including refused rules."""
    entries: tuple[Rule | RefusedRule, ...] = (*rulebook.rules, *rulebook.refused)
    return {(entry.file, entry.api) for entry in entries} | {
        (rule.file, Api.RESOURCE) for rule in rulebook.resource.rules
    }


def _lists(rulebook: Rulebook) -> Mapping[_ListOfFile, Sequence[Entry]]:
    """Return the entries of each list of each file, in their order."""
    lists: defaultdict[_ListOfFile, list[Entry]] = defaultdict(list)
    good = {rule.id: rule for rule in rulebook.rules}
    for refused in rulebook.refused:
        name = literal_name(stated_name(refused)[1])
        entry = Entry(refused.id, refused.said, refused.series_query, name, good.pop(refused.id, None), refused)
        lists[refused.file, refused.api].append(entry)
    for rule in good.values():
        name = literal_name(rule.naming.template)
        lists[rule.file, rule.api].append(Entry(rule.id, rule.content, rule.series_query, name, rule, None))
    for entries in lists.values():
        entries.sort(key=_place)
    return lists


def _place(entry: Entry | Rule) -> tuple[str, int, str]:
    """Return a key that sorts `rules[9]` before `rules[10]`."""
    return entry.id.partition("[")[0], len(entry.id), entry.id


class _Newer:
    """Determines which rules are newer than another rule's last good version."""

    def __init__(self, former: Rulebook, parsed: Rulebook) -> None:
        self._former = former
        self._said = {rule.id: rule.content for rule in former.rules}
        self._parsed = [(rule.id, rule.content) for rule in parsed.rules]
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def since(self, rule_id: str) -> frozenset[str]:
        """Return the ids of rules that were absent or different when a former rule's text was last valid."""
        then = self._former.retained.get(rule_id, frozenset())
        if then not in self._known:
            old = {said for former_id, said in self._said.items() if former_id not in then}
            self._known[then] = frozenset(rule_id for rule_id, said in self._parsed if said not in old)
        return self._known[then]


def _kept_resources(parsed: Rulebook, former: Rulebook) -> tuple[ResourceRule, ...]:
    """Return the last good versions of refused resource rules, which are identified by their resource's name."""
    good = {(rule.id, rule.file): rule for rule in former.resource.rules}
    found = ((refused, good.get((refused.id, refused.file))) for refused in parsed.refused)
    return tuple(replace(rule, line=refused.line) for refused, rule in found if rule is not None)
