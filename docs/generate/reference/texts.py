"""Texts that the code spells out, with `…` in place of the parts that are only known when it runs."""

from __future__ import annotations

import ast
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN: Final = "…"


def text_of(node: ast.expr | None, constants: Mapping[str, str]) -> str | None:
    """Return the text that an expression yields; None if no part of the text is spelled out."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_part(value, constants) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = text_of(left, constants), text_of(right, constants)
            return None if first is None and second is None else f"{first or UNKNOWN}{second or UNKNOWN}"
        case ast.Name() | ast.Attribute():
            return constants.get(ast.unparse(node))
        case _:
            return None


def constants_of(
    scope: ast.Module | ast.FunctionDef, known: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return the texts of the constants at the top level of a module or function, by name, and the known ones."""
    found = dict(known)
    for node in scope.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                text = text_of(value, found)
                if text is not None:
                    found[name] = text
    return found


def _part(value: ast.expr, constants: Mapping[str, str]) -> str:
    if isinstance(value, ast.FormattedValue):
        return text_of(value.value, constants) or UNKNOWN
    return text_of(value, constants) or ""
