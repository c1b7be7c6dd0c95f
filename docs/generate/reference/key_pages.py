"""The keys of each file that people write, from the JSON Schemas of the strict readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from docs.generate.reference.markdown import code, plain, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTRODUCTION: Final = """# Keys of a {title}

Every key with its type and default. A file with any other key is refused, with the line and the nearest key.
`[]` stands for each entry of a list, and `*` for a name of your own. `make docs` writes this page from the reader, and
[the JSON Schema](../schemas/{file}) for editors too.
"""
_DURATION: Final = "(ns|us|µs|μs|ms|s|m|h|d|w|y)"
_TYPES: Final = {
    "array": "list",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "object": "mapping",
    "string": "text",
}
_FREE: Final = {"string", "number", "boolean"}
"""The types of a schema for texts that may be written without quotes."""


def keys_page(title: str, file: str, schema: dict[str, Any]) -> str:
    """Return the page of a file: a section for each mapping, in the order in which they are nested."""
    sections = [
        f"## {code(path) if path else 'The file'}\n\n{table(('key', 'type', 'default', 'meaning'), rows)}"
        for path, rows in _sections(schema, "")
    ]
    return "\n".join([_INTRODUCTION.format(title=title, file=file), *sections])


def _sections(schema: dict[str, Any], path: str) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield each mapping that names its keys, with a row for each key."""
    properties: dict[str, Any] = schema.get("properties", {})
    if properties:
        required = set(schema.get("required", ()))
        yield path, [_row(name, each, name in required) for name, each in properties.items()]
    for name, each in properties.items():
        yield from _sections(each, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from _sections(schema["items"], f"{path}[]")
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        yield from _sections(others, f"{path}.*")
    for each in schema.get("anyOf", ()):
        yield from _sections(each, path)


def _row(name: str, schema: dict[str, Any], is_required: bool) -> tuple[str, ...]:  # noqa: FBT001 - a cell
    default = schema.get("default")
    text = str(default).lower() if isinstance(default, bool) else _number(default)
    shown = "required" if is_required else "" if default is None else code(text)
    return code(name), _type(schema), shown, plain(schema.get("description", ""))


def _number(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a key's values, as the page shows it."""
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"] if value is not None)
    if _DURATION in schema.get("pattern", ""):
        return "duration"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(filter(None, map(_type, schema["anyOf"]))))
    given = schema.get("type", ())
    types = [given] if isinstance(given, str) else [each for each in given if each != "null"]
    if set(types) == _FREE:
        return "text"
    if types == ["array"] and "items" in schema:
        return f"list: {_type(schema['items'])}"
    return " or ".join(_TYPES[each] for each in types if each != "null")
