"""The namespace that kubectl uses if no flag names one: the namespace of the kubeconfig's context."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.files.home_paths import home_path
from adapter.foundation.sources.kubernetes.credentials.access import kubeconfig_path, pod_namespace
from adapter.foundation.sources.kubernetes.credentials.plain_kubeconfig import content_of, require_end

if TYPE_CHECKING:
    from collections.abc import Iterator

_USUAL: Final = "default"


def context_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Return the namespace of a context (default: the current one); `default` if the context names none.

    In a pod without a kubeconfig, it is the pod's own namespace. Of several kubeconfigs (`A:B`), as with kubectl, the
    first that has the context, or that names the current context, decides. A kubeconfig that cannot be read names no
    namespace; the first request says what is wrong with it.
    """
    path = kubeconfig_path(kubeconfig, context)
    if path is None:
        return pod_namespace() or _USUAL
    files = [*_contents(path)]
    wanted = context or next((one["current-context"] for one in files if one.get("current-context")), None)
    for content in files:
        for entry in _list(content.get("contexts")):
            if entry.get("name") == wanted:
                named = entry.get("context")
                return str((named if isinstance(named, dict) else {}).get("namespace") or _USUAL)
    return _USUAL


def _contents(paths: str) -> Iterator[dict[str, Any]]:
    for path in filter(None, paths.split(os.pathsep)):
        file = home_path(path)
        try:
            require_end(file)
            content = content_of(file.read_text())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            yield content


def _list(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
