"""Doctor: checks that ConfigMaps with parameters can be read, and that memories can be loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.reports.cluster import unread
from adapter.foundation.reports.lines import Line, error, ok, warning
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError
from recommender.kinds.proportional.config_map_parsing import ParametersError, mode_entry, parse_parameters
from recommender.running.memory.config_map_documents import DATA_KEY, MANAGED_BY
from recommender.running.memory.memory_document import MemoryDocumentError, decode_memory
from recommender.running.memory.store_protocol import stored_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
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
        return (unread(name, str(e), f"get on the ConfigMap {where}", is_forbidden=isinstance(e, ForbiddenError)),)
    return (judge_parameters(name, where, document.get("data") or {}),)


def judge_parameters(name: str, where: str, data: Mapping[str, str]) -> Line:
    """Return the line about the content of a ConfigMap."""
    try:
        mode, text = mode_entry(data)
        parse_parameters(mode, text)
    except ParametersError as e:
        message, _, fix = str(e).rpartition(": ")
        return error(name, f"the ConfigMap {where} is refused: {message or fix}", fix)
    return ok(name, f"the ConfigMap {where} states the mode {mode}")


def look_at_memory(client: ObjectClient, recommendation: str, namespace: str) -> tuple[Line]:
    """Read the memory of a recommendation, and judge it."""
    name, where = f"memory/{recommendation}", f"{namespace}/{stored_name(recommendation)}"
    try:
        document = client.get(_path(namespace, stored_name(recommendation))).document
    except NotFoundError:
        return (ok(name, f"nothing is stored yet: the ConfigMap {where} does not exist"),)
    except KubernetesError as e:
        return (unread(name, str(e), f"get on the ConfigMap {where}", is_forbidden=isinstance(e, ForbiddenError)),)
    labels = (document.get("metadata") or {}).get("labels") or {}
    if labels.get("app.kubernetes.io/managed-by") != MANAGED_BY:
        message = f"the ConfigMap {where} was not created by this program, so nothing is scaled for this recommendation"
        return (error(name, message, "delete the ConfigMap, or rename the recommendation"),)
    return (judge_memory(name, where, recommendation, document.get("data") or {}),)


def judge_memory(name: str, where: str, recommendation: str, data: Mapping[str, str]) -> Line:
    """Return the line about the content of a memory."""
    try:
        last = decode_memory(recommendation, data.get(DATA_KEY, "")).memory.last
    except MemoryDocumentError as e:
        message = f"the memory in the ConfigMap {where} cannot be used: {e}; cool-downs and holds are lost"
        return warning(name, message, "delete the ConfigMap: the leader writes a new one")
    replicas = None if last is None else last.replicas
    value = "there is no last value yet" if replicas is None else f"the last value was {replicas}"
    return ok(name, f"the ConfigMap {where} can be read: {value}")


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"
