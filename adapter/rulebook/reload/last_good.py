"""Keeps the last good version of a rule in use after a change broke it (pure).

Rules have no names, so the former rule of a refused entry must be recognised by its place and its content. This is
decided within one list of one file, and only if there is no doubt:

1. an entry with the same content as before is the same rule, even if it was refused before and has a last good version;
2. of the rest, entries with the same `seriesQuery` are the same rule, if no other entry has it;
3. of the rest, entries between the same neighbours are the same rules, if there were as many before, all of the present
   ones are refused, and none of them says that it is another rule (`rule_identity`);
4. of the rest, one removed and one added entry are the same rule, if they are the only ones and the new entry does not
   say that it is another rule.

Any other missing rule was removed on purpose, and must not return in another's place. A refused entry that remains had
no good version, or it is unknown which.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from adapter.rulebook.findings import Code
from adapter.rulebook.model import Api, Retained, Severity
from adapter.rulebook.reload.alignment import aligned
from adapter.rulebook.reload.rule_identity import identity_of, identity_of_refused

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from adapter.rulebook.model import Finding, RefusedRule, ResourceRule, Rule, Rulebook

_ListOfFile: TypeAlias = "tuple[str, Api]"


@dataclass(frozen=True, slots=True)
class Retention:
    """A rulebook in which last good versions stand in for what was refused."""

    rulebook: Rulebook
    unsure: tuple[RefusedRule, ...] = ()
    """Refused rules that may have a last good version: nobody can tell which of those that are gone."""


def retained_in(parsed: Rulebook, former: Rulebook) -> Retention:
    """Return what is to be in force after a change: as parsed, and what is kept of the rulebook in force until now."""
    parsed = _with_last_window(parsed, former)
    if not parsed.refused:
        return Retention(parsed)
    before, now = _lists(former), _lists(parsed)
    kept: list[Rule] = []
    retained: dict[str, Retained] = {}
    unsure: list[RefusedRule] = []
    newer, reasons = _Newer(former, parsed), _reasons(parsed)
    for place, entries in now.items():
        aligned = _Alignment(before.get(place, ()), entries)
        unsure += aligned.unsure()
        for was, is_now in sorted(aligned.pairs, key=lambda pair: _place(pair[1])):
            if was.good is not None and is_now.refused is not None:
                kept.append(replace(was.good, id=is_now.id, file=is_now.refused.file, line=is_now.refused.line))
                retained[is_now.id] = Retained(reasons.get(is_now.id, ""), newer.since(was.id))
    resources = _kept_resources(parsed, former)
    retained |= {rule.id: Retained(reasons.get(rule.id, "")) for rule in resources}
    rules = sorted((*parsed.rules, *kept), key=_place) if kept else parsed.rules
    resource = replace(parsed.resource, rules=(*parsed.resource.rules, *resources)) if resources else parsed.resource
    return Retention(replace(parsed, rules=tuple(rules), resource=resource, retained=retained), tuple(unsure))


def _with_last_window(parsed: Rulebook, former: Rulebook) -> Rulebook:
    """Return the rulebook with the window that was in force, if the files have one that cannot be read."""
    if all(finding.code != Code.BAD_WINDOW for finding in parsed.findings):
        return parsed
    return replace(parsed, resource=replace(parsed.resource, window_seconds=former.resource.window_seconds))


def lost_list(parsed: Rulebook, former: Rulebook) -> Finding | None:
    """Return the error for which a whole list of rules may have vanished, as by a misspelt `externalRules`.

    None where no list vanished from a file that has an error outside of its rules.
    """
    vanished = {file for file, _ in _places(former) - _places(parsed)}
    errors = (finding for finding in parsed.findings if finding.rule is None and finding.severity is Severity.ERROR)
    # Where another file has the rule now, it has not vanished.
    lost = (error for error in errors if error.file in vanished and error.code != Code.REPEATED_RESOURCE_RULE)
    return next(lost, None)


def _places(rulebook: Rulebook) -> set[_ListOfFile]:
    """Return which files have rules of which API, those that are refused included."""
    entries: tuple[Rule | RefusedRule, ...] = (*rulebook.rules, *rulebook.refused)
    return {(entry.file, entry.api) for entry in entries} | {
        (rule.file, Api.RESOURCE) for rule in rulebook.resource.rules
    }


def says(rule: Rule) -> Rule:
    """Return the rule without its place: equal for rules that say the same, wherever they stand."""
    return replace(rule, id="", file="", line=0)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a list of rules."""

    id: str
    said: Hashable
    series_query: str
    good: Rule | None
    """The rule that serves for it."""
    refused: RefusedRule | None
    """None for one that holds."""


def _lists(rulebook: Rulebook) -> Mapping[_ListOfFile, Sequence[_Entry]]:
    """Return the entries of each list of each file, in their order."""
    lists: defaultdict[_ListOfFile, list[_Entry]] = defaultdict(list)
    good = {rule.id: rule for rule in rulebook.rules}
    for refused in rulebook.refused:
        entry = _Entry(refused.id, refused.said, refused.series_query, good.pop(refused.id, None), refused)
        lists[refused.file, refused.api].append(entry)
    for rule in good.values():
        lists[rule.file, rule.api].append(_Entry(rule.id, says(rule), rule.series_query, rule, None))
    for entries in lists.values():
        entries.sort(key=_place)
    return lists


def _place(entry: _Entry | Rule) -> tuple[str, int, str]:
    """Return what sorts `rules[9]` before `rules[10]`."""
    return entry.id.partition("[")[0], len(entry.id), entry.id


class _Alignment:
    """Which entries of a list are the same before and now."""

    def __init__(self, before: Sequence[_Entry], now: Sequence[_Entry]) -> None:
        self._before = before
        self._now = now
        self.gone = set(range(len(before)))
        self.came = set(range(len(now)))
        self.pairs: list[tuple[_Entry, _Entry]] = []
        same = aligned([entry.said for entry in before], [entry.said for entry in now])
        for index, index_now in same.equal:
            self._pair(index, index_now)
        self._pair_by("said")
        self._pair_what_holds_again()
        self._pair_by("series_query")
        for gone, came in same.replaced:
            self._pair_between(gone, came)
        if len(self.gone) == len(self.came) == 1:
            self._pair_by_place(*self.gone, *self.came)

    def unsure(self) -> Iterator[RefusedRule]:
        """Yield refused entries that are left, where rules are left that one of them may have been."""
        if any(self._before[index].good is not None for index in self.gone):
            for index in sorted(self.came):
                refused = self._now[index].refused
                if refused is not None:
                    yield refused

    def _pair(self, before: int, now: int) -> None:
        self.gone.remove(before)
        self.came.remove(now)
        self.pairs.append((self._before[before], self._now[now]))

    def _pair_by(self, key: str) -> None:
        """Pair what is left and has something that nothing else among the rest has."""
        gone, came = _once(self._before, self.gone, key), _once(self._now, self.came, key)
        for value in gone.keys() & came.keys():
            self._pair(gone[value], came[value])

    def _pair_what_holds_again(self) -> None:
        """Pair retained rules with rules that say what they said last when they held."""
        good = {says(rule): index for index in self.gone if (rule := self._before[index].good) is not None}
        for index in sorted(self.came):
            before = good.pop(self._now[index].said, None)  # type: ignore[call-overload] # any key may be asked for
            if before is not None:
                self._pair(before, index)

    def _pair_between(self, before: Iterable[int], now: Iterable[int]) -> None:
        gone = [index for index in before if index in self.gone]
        came = [index for index in now if index in self.came]
        if len(gone) == len(came) and all(self._now[index].refused is not None for index in came):
            for was, is_now in zip(gone, came, strict=True):
                self._pair_by_place(was, is_now)

    def _pair_by_place(self, before: int, now: int) -> None:
        """Pair two, unless the one that came says that it is another rule than the one that served."""
        good, refused = self._before[before].good, self._now[now].refused
        if good is None or refused is None or identity_of_refused(refused).may_be(identity_of(good)):
            self._pair(before, now)


def _once(entries: Sequence[_Entry], indices: Iterable[int], key: str) -> Mapping[Hashable, int]:
    """Return what stands once among these entries, with where it stands."""
    told = {index: getattr(entries[index], key) for index in indices}
    number = Counter(told.values())
    return {value: index for index, value in told.items() if value and number[value] == 1}


class _Newer:
    """Which rules are newer than the good version of another."""

    def __init__(self, former: Rulebook, parsed: Rulebook) -> None:
        self._former = former
        self._said = {rule.id: says(rule) for rule in former.rules}
        self._parsed = [(rule.id, says(rule)) for rule in parsed.rules]
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def since(self, rule_id: str) -> frozenset[str]:
        """Return the ids of rules that were not there, or were otherwise, when a former rule's last version held."""
        held = self._former.retained.get(rule_id)
        then = held.newer if held else frozenset()
        if then not in self._known:
            old = {said for former_id, said in self._said.items() if former_id not in then}
            self._known[then] = frozenset(rule_id for rule_id, said in self._parsed if said not in old)
        return self._known[then]


def _kept_resources(parsed: Rulebook, former: Rulebook) -> tuple[ResourceRule, ...]:
    """Return the last good versions of what is refused for cpu and memory, which have names in their file."""
    good = {(rule.id, rule.file): rule for rule in former.resource.rules}
    found = ((refused, good.get((refused.id, refused.file))) for refused in parsed.refused)
    return tuple(replace(rule, line=refused.line) for refused, rule in found if rule is not None)


def _reasons(parsed: Rulebook) -> Mapping[str | None, str]:
    """Return by rule its first error."""
    errors = (finding for finding in reversed(parsed.findings) if finding.severity is Severity.ERROR)
    return {error.rule: str(error) for error in errors}
