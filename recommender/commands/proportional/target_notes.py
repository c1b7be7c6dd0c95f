"""Logs notes about targets: the page, which shows it too, is seldom looked at in a drop-in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from recommender.decisions.record import TargetAction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.record import Record

_log = logging.getLogger(__name__)


class TargetNotes:
    """Logs the notes about targets, again only when they change. For one thread."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def polled(self, records: Sequence[Record]) -> None:
        """Take in the records of a poll. Refusals are logged with the decision."""
        outcomes = [outcome for record in records for outcome in record.targets]
        notes = {str(each.target): each.message for each in outcomes if each.action is not TargetAction.REFUSED}
        for target, note in notes.items():
            if note and self._said.get(target) != note:
                _log.warning("%s: %s", target, note)
        self._said |= notes
