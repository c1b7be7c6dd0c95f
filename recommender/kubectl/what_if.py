"""`kubectl tidewatch what-if`: the recommender's what-if questions, with the facts of the live cluster."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from adapter.foundation.service.flags.parsing import flags_or_exit
from recommender.commands.recommend.command import RECOMMEND, recommend
from recommender.kubectl.program import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_LIVE: Final = "cluster"
"""The flag that replaces the cluster by files."""

WHAT_IF: Final = replace(
    RECOMMEND,
    program=f"{PROGRAM} what-if",
    summary=(
        "Calculates each recommendation of the configuration file once, as if the cluster were different, and writes "
        "nothing. Exit status 1 if a recommendation has no value; 2 if the configuration or the cluster cannot be read."
    ),
    examples=(
        f"{PROGRAM} what-if --config recommender.yaml --assume shop/web:40",
        f"{PROGRAM} what-if --config recommender.yaml --without-node node-7 -o json",
    ),
    flags=tuple(flag for flag in RECOMMEND.flags if flag.name != _NOT_LIVE),
)


def what_if(arguments: Sequence[str]) -> NoReturn:
    """Run the command; leaves by SystemExit."""
    flags_or_exit(WHAT_IF, arguments, os.environ)
    recommend(arguments)
