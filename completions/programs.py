"""The programs that are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.commands.table import COMMANDS as ADAPTER
from recommender.commands.table import COMMANDS as RECOMMENDER
from recommender.kubectl.table import COMMANDS as PLUGIN

if TYPE_CHECKING:
    from adapter.foundation.service.flags.program import Program

PROGRAMS: Final[tuple[Program, ...]] = (ADAPTER, RECOMMENDER, PLUGIN)
