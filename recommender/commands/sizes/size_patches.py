"""Sizes as commands of kubectl: a strategic merge patch for each workload whose requests change."""

from __future__ import annotations

import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.objects.quantities import milli_quantity
from adapter.foundation.reports.terminal_escaping import printable
from adapter.foundation.sources.prometheus.errors import shorten_message
from recommender.kinds.resources.size_record import SizeRecord, SizeStatus
from recommender.kinds.resources.workloads import CPU, MEMORY, SizedWorkload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recommender.commands.sizes.size_reading import Sizes

_KINDS: Final = {
    "Deployment": ("deployment.apps", ("spec", "template", "spec")),
    "StatefulSet": ("statefulset.apps", ("spec", "template", "spec")),
    "DaemonSet": ("daemonset.apps", ("spec", "template", "spec")),
    "CronJob": ("cronjob.batch", ("spec", "jobTemplate", "spec", "template", "spec")),
}
"""kubectl's name of each kind, and the path to its pod spec. Patching other kinds does not change their pods."""
_MEBIBYTE: Final = 2**20


def as_patches(sizes: Sizes) -> str:
    """Return a script with a command for each workload, and notes on it as comments."""
    lines = ["# Each command restarts the pods of its workload. Read it before you run it."]
    lines += map(_comment, sizes.missing)
    by_workload = sorted(sizes.records, key=lambda record: record.workload)
    order = {record.workload: place for place, record in reversed(list(enumerate(sizes.records)))}
    groups = [(workload, list(records)) for workload, records in groupby(by_workload, lambda each: each.workload)]
    for workload, records in sorted(groups, key=lambda group: order[group[0]]):
        lines += _workload_lines(workload, records)
    return "\n".join(lines)


def patch_of(workload: SizedWorkload, records: Iterable[SizeRecord]) -> dict[str, object] | None:
    """Return the strategic merge patch of the requests that change; None if none changes or none may be patched."""
    containers = [
        {"name": record.container, "resources": resources}
        for record in records
        if record.status is SizeStatus.OK and is_object_name(record.container) and (resources := _resources(record))
    ]
    known = _KINDS.get(workload.kind)
    if not containers or known is None:
        return None
    patch: dict[str, object] = {"containers": sorted(containers, key=lambda each: str(each["name"]))}
    for key in reversed(known[1]):
        patch = {key: patch}
    return patch


def _workload_lines(workload: SizedWorkload, records: Sequence[SizeRecord]) -> Iterator[str]:
    for record in records:
        if record.message:
            yield _comment(f"{workload} {record.container}: {record.message}")
    if not any(record.status is SizeStatus.OK for record in records):
        return
    if workload.kind not in _KINDS:
        yield _comment(f"{workload}: pods of this kind are changed where their template is, not by a patch")
        return
    patch = patch_of(workload, records)
    if patch is None:
        yield _comment(f"{workload}: the requests are as recommended")
    elif is_object_name(workload.name) and is_namespace_name(workload.namespace):
        yield shlex.join(
            (
                "kubectl", "patch", f"{_KINDS[workload.kind][0]}/{workload.name}", f"--namespace={workload.namespace}",
                "--type=strategic", f"--patch={msgspec.json.encode(patch).decode()}",
            )
        )  # fmt: skip


def _comment(text: str) -> str:
    return f"# {printable(shorten_message(text))}"


def _resources(record: SizeRecord) -> dict[str, Mapping[str, str]]:
    sizes = {CPU: record.cpu, MEMORY: record.memory}
    changed = {resource: size for resource, size in sizes.items() if size is not None and size.target != size.request}
    limits = {
        resource: _quantity(resource, size.recommended_limit)
        for resource, size in sizes.items()
        if size is not None and size.recommended_limit is not None
    }
    found: dict[str, Mapping[str, str]] = {}
    if changed:
        found["requests"] = {resource: _quantity(resource, size.target) for resource, size in changed.items()}
    if limits:
        found["limits"] = limits
    return found


def _quantity(resource: str, amount: int) -> str:
    if resource == CPU:
        return milli_quantity(amount)
    return f"{amount // _MEBIBYTE}Mi" if amount % _MEBIBYTE == 0 else str(amount)
