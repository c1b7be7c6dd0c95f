"""The variables that are visible at one position of a template."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Variables(Generic[T]):
    """Values of variables by name. A variable that is declared again hides the earlier one until its scope ends.

    The time to look up a name does not depend on the number of variables.
    """

    def __init__(self, root: T) -> None:
        """`root` is the value of `$`."""
        self._declared: list[tuple[str, T]] = []
        self._places: dict[str, list[int]] = {}
        """Positions of each name in `_declared`, the innermost last."""
        self.declare("$", root)

    def __len__(self) -> int:
        """Return the number of declared variables, including hidden ones; `end_scope` takes it."""
        return len(self._declared)

    def __contains__(self, name: str) -> bool:
        """Return whether a variable of this name is visible."""
        return name in self._places

    def __getitem__(self, name: str) -> T:
        """Return the value of the innermost variable of this name. Raises KeyError."""
        return self._declared[self._places[name][-1]][1]

    def __setitem__(self, name: str, value: T) -> None:
        """Change the innermost variable of this name; raises KeyError."""
        self._declared[self._places[name][-1]] = name, value

    def declare(self, name: str, value: T) -> None:
        """Add a variable, which hides others of its name."""
        self._places.setdefault(name, []).append(len(self._declared))
        self._declared.append((name, value))

    def end_scope(self, length: int) -> None:
        """Forget all variables but the first `length`."""
        while len(self._declared) > length:
            name, _ = self._declared.pop()
            places = self._places[name]
            places.pop()
            if not places:
                del self._places[name]
