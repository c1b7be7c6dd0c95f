"""Hints in errors about metrics that do not exist: the most similar metric, or the rule that almost provides it.

A hint is one short clause, since it becomes the text of an autoscaler's event, and names the command that explains
more.
"""

from __future__ import annotations

import operator
import re
import time
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from adapter.foundation.time.pace import UNPACED, Pace
from adapter.metrics.apis.hints.served_names import nearest_name, served_names
from adapter.metrics.rulebook.near_misses import (
    LONGEST_NAME,
    MOST_RULES,
    Closeness,
    NearMiss,
    Selecting,
    near_miss,
    with_parsed_query,
)
from adapter.metrics.rulebook.reload.refused_misses import RefusedMiss, refusal, refused_for, refused_of_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.readings.catalogue.last_look_up import LookUp
    from adapter.metrics.rulebook.model import Api, Metric, RefusedRule, Rule

MOST_NAMED = 5
LONGEST_CHARACTERS = 240
"""Limit on a clause that quotes rules or Prometheus, without the command that explains more."""
MOST_REMEMBERED = 1000
"""Limit on the names whose near misses are cached, since autoscalers repeat their requests. Names that are longer than
those of metrics are not cached: no rule and no metric is close to them."""
_COMMAND = re.compile(r"[A-Za-z0-9_:./ -]{1,190}")
"""Commands that a message may name: a shell takes each of their characters literally."""


@dataclass(frozen=True, slots=True)
class _Missed:
    in_force: NearMiss | None
    refused: RefusedRule | None
    refused_is_exact: bool
    """Whether the refused rule would make exactly this metric, so that it takes precedence."""


@dataclass(frozen=True, slots=True)
class _Rules:
    rules: tuple[Rule, ...] = ()
    selecting: tuple[Selecting, ...] = ()
    refused: tuple[RefusedRule, ...] = ()
    refusals: tuple[RefusedMiss, ...] = ()
    missed: dict[str, _Missed] = field(default_factory=dict)
    """Maps a requested name to the rules that come closest to providing a metric of that name."""


class Hints:
    """Hints from one catalogue and its rules, indexed in advance; `prepare` switches to another catalogue.

    `look_ups` returns the rules in force with the results of their last look-ups, and `refused` the refused rules;
    `wall` returns Unix seconds.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        look_ups: Callable[[], Sequence[LookUp]] = tuple,
        wall: Callable[[], float] = time.time,
        refused: Callable[[], Sequence[RefusedRule]] = tuple,
    ) -> None:
        self._look_ups = look_ups
        self._wall = wall
        self._refused = refused
        self._names = served_names(catalogue, UNPACED)
        self._rules = _Rules()
        self._prepare_rules(UNPACED)

    def prepare(self, catalogue: Catalogue, pace: Pace) -> None:
        """Index this catalogue and the rules, unless they are indexed already."""
        if self._names.catalogue is not catalogue:
            self._names = served_names(catalogue, pace)
        self._prepare_rules(pace)

    def for_missing(self, name: str, command: str = "") -> str:
        """Return one clause that says where a metric of this name is served, or why there may be none.

        `command` is the command that explains more; empty if there is none.
        """
        return f"{self._clause(name)}{more(command)}"

    def for_failed_look_ups(self, api: Api, name: str, command: str = "") -> str | None:
        """Return one clause that says why an unknown metric may exist nevertheless; None if nothing suggests that.

        It may exist while a rule of the API would provide it and none of that rule's look-ups has succeeded yet.
        """
        if name in self._names.places or name in self._names.renamed:
            return None
        failing = [one.rule for one in self._look_ups() if one.failure is not None and one.succeeded_at is None]
        for one in self._rules.selecting[:MOST_RULES] if failing else ():
            if one.rule.api is not api or not any(rule is one.rule for rule in failing):
                continue
            miss = near_miss((one,), name)
            if miss is not None and miss.obstacle is None:
                return f"{shorten_clause(self._near_miss_text(miss))}{more(command)}"
        return None

    def likeliest(self, name: str) -> Metric | None:
        """Return the custom metric that the name means if no kind is named; None if none is known."""
        return self._names.likeliest.get(name)

    def _clause(self, name: str) -> str:
        index = self._names
        if places := index.places.get(name):
            return f"a metric of this name is served {_joined_in_words(places)}"
        if renamed := index.renamed.get(name):
            places = index.places[renamed]
            return f"the series of this name is served as the metric {renamed}, {_joined_in_words(places)}"
        return shorten_clause(self._similar_rule_hint(name) or self._look_ups_text(name))

    def _similar_rule_hint(self, name: str) -> str | None:
        """Return a clause about the rule that nearly serves the metric; None if no rule is similar."""
        missed = self._near_misses_of(name)
        miss, refused = missed.in_force, missed.refused
        if refused is not None and (missed.refused_is_exact or miss is None):
            place = f"{PurePath(refused.file).name}:{refused.line}"
            return f"{refused.id} ({place}) would provide it, but is refused: see the adapter's log"
        return None if miss is None else self._near_miss_text(miss)

    def _near_misses_of(self, name: str) -> _Missed:
        rules = self._rules
        if len(name) <= LONGEST_NAME and name not in rules.missed:
            if len(rules.missed) >= MOST_REMEMBERED:
                rules.missed.clear()
            closeness, refused = refused_for(rules.refusals, name) or (Closeness.NONE, None)
            rules.missed[name] = _Missed(near_miss(rules.selecting, name), refused, closeness is Closeness.EXACT)
        return rules.missed.get(name) or _Missed(None, None, refused_is_exact=False)

    def _near_miss_text(self, miss: NearMiss) -> str:
        rule = miss.rule.id
        if miss.obstacle is not None:
            return f"{rule} does not serve it: {miss.obstacle}"
        look_up = next((one for one in self._look_ups() if one.rule is miss.rule), None)
        if look_up is not None and look_up.failure is not None:
            return f"{rule} would provide it from the series {miss.series}, but {self._failure_text(look_up)}"
        return (
            f"{rule} would provide it from the series {miss.series}, but found none whose labels name an object "
            f"and its namespace{self._looked_up(look_up)}"
        )

    def _look_ups_text(self, name: str) -> str:
        look_ups, number = self._look_ups(), len(self._rules.refused)
        refused = f"; {number} rule{' is' if number == 1 else 's are'} refused: see the adapter's log" if number else ""
        if not look_ups and not self._names.places:
            return f"no rule for custom or external metrics is in force{refused or ': the rule files hold none'}"
        for look_up in look_ups:
            if look_up.failure is not None:
                return f"no metric of this name is known, and {look_up.rule.id} {self._failure_text(look_up)}"
        newest = max(look_ups, key=lambda one: one.succeeded_at or 0.0, default=None)
        when = self._looked_up(newest)
        if not self._names.places:
            return f"no metric is known yet: no rule has found a series in Prometheus{when}{refused}"
        meant = self._similar_name(name)
        if meant is not None:
            return f"did you mean {meant}? No rule provides a metric of this name{refused}"
        return f"no rule provides a metric of this name, or none of its series is in Prometheus{when}{refused}"

    def _similar_name(self, name: str) -> str | None:
        """Return the metric with the most similar name."""
        index = self._names
        if len(name) <= LONGEST_NAME and name not in index.meant:
            if len(index.meant) >= MOST_REMEMBERED:
                index.meant.clear()
            index.meant[name] = nearest_name(name, index.by_length)
        return index.meant.get(name)

    def _failure_text(self, look_up: LookUp) -> str:
        before = "" if look_up.succeeded_at is None else f", which last succeeded {self._ago(look_up)}"
        return f"cannot look up its series{before}: {look_up.failure}"

    def _looked_up(self, look_up: LookUp | None) -> str:
        if look_up is None or look_up.succeeded_at is None:
            return ""
        return f" (looked up {self._ago(look_up)})"

    def _ago(self, look_up: LookUp) -> str:
        return f"{max(0.0, self._wall() - (look_up.succeeded_at or 0.0)):.0f} s ago"

    def _prepare_rules(self, pace: Pace) -> None:
        rules = tuple(look_up.rule for look_up in self._look_ups())
        refused = refused_of_names(self._refused())
        known = self._rules
        if _are(rules, known.rules) and _are(refused, known.refused):
            return
        # One rule per slice: reading its query takes a tenth of a millisecond.
        read = [with_parsed_query(rule) for part in pace.slices(rules, 1) for rule in part]
        refusals = [refusal(rule) for part in pace.slices(refused, 1) for rule in part]
        self._rules = _Rules(rules, tuple(read), refused, tuple(refusals))


def more(command: str) -> str:
    """Return where to learn more, to be appended to a clause; empty if the command is empty or not safe to type."""
    return f" (more: {command})" if _COMMAND.fullmatch(command) else ""


def _are(these: Sequence[object], those: Sequence[object]) -> bool:
    return len(these) == len(those) and all(map(operator.is_, these, those))


def shorten_clause(clause: str) -> str:
    """Return the clause on one line, short enough for an autoscaler's event."""
    line = " ".join(clause.split())
    return line if len(line) <= LONGEST_CHARACTERS else f"{line[: LONGEST_CHARACTERS - 1]}…"


def _joined_in_words(places: tuple[str, ...]) -> str:
    if len(places) > MOST_NAMED:
        return f"{', '.join(places[:MOST_NAMED])} and {len(places) - MOST_NAMED} more"
    *first, last = places
    return f"{', '.join(first)} and {last}" if first else last
