"""Line about whether a store of metrics holds the series of several clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapter.foundation.reports.lines import Line, ok, warning

CLUSTERS = "prometheus/clusters"
"""Name of the line about clusters."""
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
