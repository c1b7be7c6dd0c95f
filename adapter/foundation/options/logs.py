"""Flags for the destination and format of a program's logs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adapter.foundation.service.flags.table import BOOLEAN, INTEGER, TEXT, Flag, FlagValues, Ignored, in_group, one_of
from adapter.foundation.service.runtime.logs import FORMATS, LEVELS, configure_logs, level_of_verbosity

_LOGS = "Logs"
_QUIET: Final = "warning"
_KLOG = Ignored("logs go to stderr; --log-format and --log-level say how")

LOG_FLAGS: tuple[Flag, ...] = in_group(
    _LOGS,
    Flag("log-format", one_of(*FORMATS), "Format of log lines.", default="text"),
    Flag("log-level", one_of(*LEVELS), "Lowest level that is logged (default: info, or as --v says)."),
    Flag("v", INTEGER, "Verbosity as in klog; 4 and higher mean the level debug.", short="v", default=0),
    *(
        Flag(name, kind, state=_KLOG)
        for name, kind in (
            ("add-dir-header", BOOLEAN),
            ("alsologtostderr", BOOLEAN),
            ("log-backtrace-at", TEXT),
            ("log-dir", TEXT),
            ("log-file", TEXT),
            ("log-file-max-size", TEXT),
            ("log-flush-frequency", TEXT),
            ("log-link", TEXT),
            ("logbuflevel", TEXT),
            ("logtostderr", BOOLEAN),
            ("one-output", BOOLEAN),
            ("skip-headers", BOOLEAN),
            ("skip-log-headers", BOOLEAN),
            ("stderrthreshold", TEXT),
            ("vmodule", TEXT),
        )
    ),
)


QUIET_LOG_FLAGS: Final = tuple(
    replace(flag, help=f"Lowest level that is logged (default: {_QUIET}, or as --v says).")
    if flag.name == "log-level"
    else flag
    for flag in LOG_FLAGS
)
"""The flags of commands that answer on the terminal: these read a cluster once, and few users want to know how."""


def configure_logs_by(values: FlagValues, *, queued: bool = False) -> None:
    """Configure logging from the flags; `queued` is for servers, which must not wait for a slow reader of the log."""
    level = values.text("log-level") or level_of_verbosity(values.integer("v"))
    configure_logs(values.text("log-format"), level, queued=queued)


def configure_quiet_logs_by(values: FlagValues) -> None:
    """Configure logging from QUIET_LOG_FLAGS: only warnings and errors, unless a flag sets another level."""
    by_verbosity = level_of_verbosity(values.integer("v")) if "v" in values.given else _QUIET
    configure_logs(values.text("log-format"), values.text("log-level") or by_verbosity)
