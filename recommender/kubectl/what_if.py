"""`kubectl tidewatch what-if`: answers the recommender's what-if questions with the facts of the live cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NoReturn

from adapter.foundation.options.prometheus import PROMETHEUS_FLAGS
from adapter.foundation.service.flags.parsing import flags_or_exit
from adapter.foundation.service.flags.table import PATH, Flag
from recommender.commands.recommend.command import RECOMMEND, recommend
from recommender.kubectl.program import PROGRAM

_NOT_TAKEN: Final = {"config", "cluster", "workload", *(flag.name for flag in PROMETHEUS_FLAGS)}
"""Flags that replace the cluster by files, or that replace the configuration file; `--config` is required here."""

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
    flags=(
        Flag("config", PATH, "The recommender's configuration file.", required=True),
        *(flag for flag in RECOMMEND.flags if flag.name not in _NOT_TAKEN),
    ),
)


def what_if(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    flags_or_exit(WHAT_IF, arguments)
    recommend(arguments, PROGRAM)
