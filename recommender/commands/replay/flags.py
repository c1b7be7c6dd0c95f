"""The flags of `tidewatch-recommender replay`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.report_format import output_flag
from adapter.foundation.service.flags.table import INTEGER, PATH, TEXT, CommandFlags, Flag
from recommender.commands.past_span import DEFAULT_LAST_SECONDS, SPAN
from recommender.commands.program import PROGRAM

REPLAY: Final = CommandFlags(
    program=f"{PROGRAM} replay",
    summary=(
        "Replays the recorded nodes and pods of a cluster through policies of cluster size, and says what each would "
        "have cost and who would have waited. Changes nothing. Exit status 2 if the "
        "configuration or the past cannot be read."
    ),
    examples=(
        f"{PROGRAM} replay --config recommender.yaml --prometheus-url http://127.0.0.1:9090 --last 14d",
        f"{PROGRAM} replay --config recommender.yaml --recording state/recording --plot policies.png",
    ),
    flags=(
        Flag("config", PATH, "The configuration file, with a recommendation with clusterSize."),
        Flag("recommendation", TEXT, "The recommendation to replay; needed if the file has several with clusterSize."),
        Flag(
            "prometheus-url",
            TEXT,
            "Base URL of a Prometheus with the series of kube-state-metrics (default: that of the "
            "configuration). Credentials of the configuration are sent to its own URL only.",
        ),
        Flag(
            "last",
            SPAN,
            "How long the past is, up to --end. Of a recording, all of it without this flag.",
            default=DEFAULT_LAST_SECONDS,
        ),
        Flag(
            "end",
            TEXT,
            "End of the past: 2026-11-07T00:00:00Z, a date (its midnight in UTC), or a time ago such as -1d "
            "(default: now; of a recording, its end).",
        ),
        Flag(
            "step",
            SPAN,
            "Step of the queries to Prometheus. Pods that lived for less than a step may be missing.",
            default=300.0,
        ),
        Flag(
            "recording",
            PATH,
            "Replay what `run` has recorded (`record: 30d`): a file of a recording, or the folder with all.",
        ),
        Flag(
            "startup-seconds",
            SPAN,
            "From the request for a node until pods run on it (default: the median of the past, else 120).",
        ),
        Flag(
            "spot-interruptions",
            TEXT,
            "Node groups of spot machines, each with how often one node is interrupted in an hour: "
            "GROUP=0.02, separated by commas. Needs --spot-absence; without both, spot has no policy.",
        ),
        Flag(
            "spot-absence",
            SPAN,
            "For how long after an interruption no further machine of that group is available; 0 if one always is.",
        ),
        Flag("spot-seed", INTEGER, "Seed of the random generator that draws the moments of interruptions.", default=0),
        output_flag(),
        Flag("plot", PATH, "Also draw the nodes over time by policy into this PNG or SVG file."),
        *LOG_FLAGS,
    ),
)
