"""`/openapi/v2` and `/openapi/v3`: the schemas of the answers of the three groups.

kube-apiserver requests both about once a minute and merges them into its own. If they are missing, it logs that each
time, and `kubectl explain podmetrics` has nothing to show. They never change, so they are made once. No `Accept` header
is refused, because kube-apiserver would keep asking. The documents follow OpenAPI 2.0 and 3.0, with the extensions of
`k8s.io/kube-openapi`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapter.foundation.web.http import JSON, Response, json_line
from adapter.foundation.web.tagged import digest, entity, unless_current
from adapter.metrics.apis.openapi.schemas import GVK, Operation, operations_of, schemas_of
from adapter.metrics.apis.routing import VERSIONS, OpenApi2, Schemas

_INFO = {"title": "Tidewatch", "version": "v1"}
_VARY = (("Vary", "Accept"),)


def schemas_response(asked: Schemas, if_none_match: str) -> Response:
    """Return the requested document, or 304 if the client already has it."""
    if isinstance(asked, OpenApi2):
        return unless_current(_V2, if_none_match)
    return unless_current(_V3[asked.group, asked.version] if asked.group else _V3_INDEX, if_none_match)


def _all_groups() -> Iterator[tuple[str, str]]:
    return ((group, version) for group, versions in VERSIONS.items() for version in versions)


def _v2_reference(name: str, description: str = "") -> dict[str, Any]:
    """Return a reference with a description, which OpenAPI 2.0 ignores and Kubernetes's tools read."""
    reference = {"$ref": f"#/definitions/{name}"}
    return {"description": description, **reference} if description else reference


def _v3_reference(name: str, description: str = "") -> dict[str, Any]:
    """Return a reference; OpenAPI 3.0 allows no other fields beside it."""
    reference = {"$ref": f"#/components/schemas/{name}"}
    return {"description": description, "allOf": [reference]} if description else reference


def _v2() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for group, version in _all_groups():
        definitions |= schemas_of(group, version, _v2_reference)
        paths |= {operation.path: _v2_path(operation) for operation in operations_of(group, version)}
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}


def _v2_path(operation: Operation) -> dict[str, Any]:
    schema = _v2_reference(operation.schema)
    parameters = [
        {"name": name, "in": "path", "required": True, "type": "string", "uniqueItems": True}
        for name in operation.parameters
    ]
    get = {
        **_operation_keys(operation),
        "produces": [JSON],
        "responses": {"200": {"description": "OK", "schema": schema}},
    }
    return {"get": get, **({"parameters": parameters} if parameters else {})}


def _v3(group: str, version: str) -> dict[str, Any]:
    paths = {operation.path: _v3_path(operation) for operation in operations_of(group, version)}
    components = {"schemas": schemas_of(group, version, _v3_reference)}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": components}


def _v3_path(operation: Operation) -> dict[str, Any]:
    content = {JSON: {"schema": _v3_reference(operation.schema)}}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in operation.parameters
    ]
    get = {**_operation_keys(operation), "responses": {"200": {"description": "OK", "content": content}}}
    return {"get": get, **({"parameters": parameters} if parameters else {})}


def _operation_keys(operation: Operation) -> dict[str, Any]:
    return {
        "description": operation.description,
        "operationId": operation.id,
        "x-kubernetes-action": operation.action,
        GVK: operation.kind,
    }


def _v3_index(documents: Mapping[tuple[str, str], Response]) -> dict[str, Any]:
    """Return the index of the documents; the hash in an address shows a client whether it already has the document."""
    return {
        "paths": {
            f"apis/{group}/{version}": {
                "serverRelativeURL": f"/openapi/v3/apis/{group}/{version}?hash={digest(document.body)}"
            }
            for (group, version), document in documents.items()
        }
    }


_V2 = entity(json_line(_v2()), headers=_VARY)
_V3 = {(group, version): entity(json_line(_v3(group, version)), headers=_VARY) for group, version in _all_groups()}
_V3_INDEX = entity(json_line(_v3_index(_V3)), headers=_VARY)
