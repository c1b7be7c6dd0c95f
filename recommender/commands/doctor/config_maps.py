"""Doctor: checks that ConfigMaps with parameters can be read, and that memories can be loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.lines import Line, error, ok, warning
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from recommender.kinds.proportional.config_map_parsing import ParametersError, mode_entry, parse_parameters
from recommender.running.memory.config_map_documents import MANAGED_BY, content_of, decode_content
from recommender.running.memory.memory_document import MemoryDocumentError
from recommender.running.memory.store_protocol import MemoryKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.decisions.memory import Memory
    from recommender.kinds.proportional.parameters import ParametersConfigMap


def look_at_parameters(client: ObjectClient, recommendation: str, config_map: ParametersConfigMap) -> tuple[Line]:
    """Read the ConfigMap of a recommendation, and parse it."""
    name, where = f"parameters/{recommendation}", f"{config_map.namespace}/{config_map.name}"
    try:
        document = client.get(_path(config_map.namespace, config_map.name)).document
    except NotFoundError:
        if config_map.default_params is not None:
            return (ok(name, f"the ConfigMap {where} does not exist: `run` creates it with the default parameters"),)
        fix = "create it, or give default parameters"
        return (error(name, f"the ConfigMap {where} does not exist", fix),)
    except KubernetesError as e:
        return (unread(name, e, f"get on the ConfigMap {where}"),)
    return (judge_parameters(name, where, document.get("data") or {}),)


def judge_parameters(name: str, where: str, data: Mapping[str, str]) -> Line:
    """Return the line about the content of a ConfigMap."""
    try:
        mode, text = mode_entry(data)
        parse_parameters(mode, text)
    except ParametersError as e:
        message, _, fix = str(e).rpartition(": ")
        return error(name, f"the ConfigMap {where} is refused: {message or fix}", fix)
    return ok(name, f"the ConfigMap {where} has the mode {mode}")


def look_at_memory(client: ObjectClient, recommendation: str, namespace: str, shards: int | None) -> tuple[Line]:
    """Read the memory of a recommendation, and judge it; `shards` is None if the memory is in one ConfigMap."""
    name, memories = f"memory/{recommendation}", []
    keys = [MemoryKey(recommendation, shard) for shard in ((None,) if shards is None else range(shards))]
    for key in keys:
        where = f"{namespace}/{key.object_name}"
        try:
            document = client.get(_path(namespace, key.object_name)).document
        except NotFoundError:
            continue
        except KubernetesError as e:
            return (unread(name, e, f"get on the ConfigMap {where}"),)
        labels = (document.get("metadata") or {}).get("labels") or {}
        if labels.get("app.kubernetes.io/managed-by") != MANAGED_BY:
            what = (
                f"the ConfigMap {where} was not created by this program, so nothing is scaled for this recommendation"
            )
            return (error(name, what, "delete the ConfigMap, or rename the recommendation"),)
        try:
            memories.append(decode_content(key, content_of(key, document) or "").memory)
        except MemoryDocumentError as e:
            what = f"the memory in the ConfigMap {where} cannot be used: {e}; cool-downs and holds are lost"
            return (warning(name, what, "delete the ConfigMap: the leader writes a new one"),)
    first = f"the ConfigMap {namespace}/{keys[0].object_name}"
    if not memories:
        return (ok(name, f"nothing is stored yet: {first} does not exist"),)
    if shards is None:
        return (ok(name, f"{first} can be read: {_last_value(memories[0])}"),)
    targets = sum(len(memory.by_target) for memory in memories)
    held = f"the last values of {count_of(targets, 'target')}"
    return (ok(name, f"{count_of(len(memories), 'ConfigMap')} can be read, with {held}"),)


def _last_value(memory: Memory) -> str:
    replicas = None if memory.last is None else memory.last.replicas
    return "there is no last value yet" if replicas is None else f"the last value was {replicas}"


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"
