"""Lines about what a store of metrics holds: the series of several clusters, and samples from the future."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapter.foundation.reports.lines import Line, ok, warning

CLUSTERS = "prometheus/clusters"
"""Name of the line about clusters."""
FUTURE = "prometheus/future"
"""Name of the line about samples with timestamps in the future."""
_MOST_SHOWN = 4


def judge_clusters(found: Mapping[str, Sequence[str]], matchers: str, setting: str) -> Line:
    """Return the line about the clusters of a store.

    `found` has the values of each label that names clusters and has several values. `matchers` are the matchers in use;
    `setting` is the flag or key that sets them.
    """
    if matchers:
        return ok(CLUSTERS, f"only series with {matchers} are read")
    if not found:
        return ok(CLUSTERS, "no label shows that it holds series of several clusters")
    label, values = next(iter(found.items()))
    shown = ", ".join(value or "none" for value in values[:_MOST_SHOWN]) + (", …" if len(values) > _MOST_SHOWN else "")
    example = next(value for value in values if value)
    message = f"it holds the series of several clusters ({label}: {shown}), which would be added up and mixed"
    return warning(CLUSTERS, message, f"""set {setting} '{label}="{example}"', with the name of this cluster""")


def judge_future(targets: int) -> Line:
    """Return the line about samples with timestamps in the future; `targets` is the number of targets that have any."""
    if not targets:
        return ok(FUTURE, "it holds no samples of times to come")
    message = (
        f"it holds samples of times to come (targets: {targets}), so the clock of a Prometheus that writes to it is or "
        "was ahead: when their time comes, they are taken for current"
    )
    return warning(FUTURE, message, "synchronize the clocks of all that write to it with NTP, and delete these samples")
