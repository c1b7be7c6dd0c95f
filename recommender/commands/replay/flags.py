"""The flags of `tidewatch-recommender replay`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.version import program_version
from adapter.foundation.service.flags.table import PATH, TEXT, CommandFlags, Flag, one_of
from recommender.commands.past_span import DEFAULT_LAST_SECONDS, SPAN
from recommender.commands.program import PROGRAM

REPLAY: Final = CommandFlags(
    program=f"{PROGRAM} replay",
    version=program_version(),
    summary=(
        "Replays the recorded nodes and pods of a cluster through policies of cluster size, and says what each would "
        "have cost and who would have waited. Changes nothing. Exit status 2 if configuration or past cannot be read."
    ),
    examples=(
        f"{PROGRAM} replay --config recommender.yaml --prometheus-url http://127.0.0.1:9090 --last 14d",
        f"{PROGRAM} replay --config recommender.yaml --recording state/recording --plot policies.png",
    ),
    flags=(
        Flag(name="config", kind=PATH, help="The configuration file, with a recommendation with clusterSize."),
        Flag(
            name="recommendation",
            kind=TEXT,
            help="The recommendation to replay; needed if the file has several with clusterSize.",
        ),
        Flag(
            name="prometheus-url",
            kind=TEXT,
            help="Base URL of a Prometheus with the series of kube-state-metrics (default: that of the configuration). "
            "Credentials of the configuration are sent to its own URL only.",
        ),
        Flag(
            name="last",
            kind=SPAN,
            default=DEFAULT_LAST_SECONDS,
            help="How long the past is, up to --end. Of a recording, all of it without this flag.",
        ),
        Flag(
            name="end",
            kind=TEXT,
            help="End of the past: 2026-11-07T00:00:00Z, a date (its midnight in UTC), or a time ago such as -1d "
            "(default: now; of a recording, its end).",
        ),
        Flag(
            name="step",
            kind=SPAN,
            default=300.0,
            help="How finely Prometheus is asked. Pods that lived for less than a step may be missing.",
        ),
        Flag(
            name="recording",
            kind=PATH,
            help="Replay what `run` has recorded (`record: 30d`): a file of a recording, or the folder with all.",
        ),
        Flag(
            name="startup-seconds",
            kind=SPAN,
            help="From the request for a node until pods run on it (default: the median of the past, else 120).",
        ),
        Flag(
            name="output",
            short="o",
            kind=one_of("text", "table", "json"),
            default="text",
            help="How the report is printed; table is another name for text.",
        ),
        Flag(name="plot", kind=PATH, help="Also draw the nodes over time by policy into this PNG or SVG file."),
        *LOG_FLAGS,
    ),
)
