"""The flags of `recommend --shapes`. The code behind them is loaded only if they are given."""

from __future__ import annotations

from typing import Final

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import INTEGER, PATH, TEXT, Flag, FlagValues, in_group
from recommender.commands.past_span import DEFAULT_LAST_SECONDS, SPAN

_GROUP: Final = "Machine shapes"
_MOST_SHAPES: Final = 8
_OWN: Final = ("recording", "last", "end", "step")
_PAST: Final = ("prometheus-url", *_OWN)
_BESIDES: Final = ("max-shapes", *_OWN)
_ELSEWHERE: Final = ("assume", "without-node", "add-pods")

SHAPE_FLAGS: Final = in_group(
    _GROUP,
    Flag(
        "shapes",
        PATH,
        "Instead of sizes, name the cheapest machines for the peak hours of a history: a catalogue of shapes.",
    ),
    Flag("max-shapes", INTEGER, "Maximum number of shapes to use.", default=3),
    Flag("recording", PATH, "The history is what `run` has recorded: a file of a recording, or the folder with all."),
    Flag(
        "last",
        SPAN,
        "How long the history is, up to --end. Of a recording, all of it without this flag.",
        default=DEFAULT_LAST_SECONDS,
    ),
    Flag("end", TEXT, "End of the history: a time, a date, or -1d (default: now; of a recording, its end)."),
    Flag("step", SPAN, "Step of the queries to Prometheus.", default=300.0),
)


def check_shape_flags(values: FlagValues) -> None:
    """Refuse flags that cannot be combined. Raises UsageError."""
    if values.path("shapes") is None:
        lonely = next((name for name in _BESIDES if name in values.given), None)
        if lonely is not None:
            raise UsageError(f"--{lonely} has no effect without --shapes: name a catalogue of machine shapes")
        return
    other = next((name for name in _ELSEWHERE if name in values.given), None)
    if other is not None:
        raise UsageError(
            f"--{other} cannot be combined with --shapes, which packs pods of the past: remove one of them"
        )
    if len(values.texts("recommendation")) > 1:
        raise UsageError("--shapes packs the pods of one recommendation: write --recommendation once")
    if not 1 <= values.integer("max-shapes") <= _MOST_SHAPES:
        raise UsageError(f"--max-shapes of {values.integer('max-shapes')}: write 1 to {_MOST_SHAPES}")
    if has_past(values) and values.path("cluster") is not None:
        raise UsageError(
            "--cluster and a history cannot be combined: machines are chosen for one of them, so remove the other"
        )


def has_past(values: FlagValues) -> bool:
    """Return whether the flags name a history; otherwise, the current cluster is used."""
    return any(name in values.given for name in _PAST)
