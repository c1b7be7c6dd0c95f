"""The variables that are visible at one place of a template."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Variables(Generic[T]):
    """Names with what is known of each; a name that is declared again hides the one before until its scope ends.

    Looking a name up takes the same time however many there are.
    """

    def __init__(self, root: T) -> None:
        """`root` is what `$` stands for."""
        self._declared: list[tuple[str, T]] = []
        self._places: dict[str, list[int]] = {}
        """Where in `_declared` a name stands, inner ones last."""
        self.declare("$", root)

    def __len__(self) -> int:
        """Return how many are declared, hidden ones included: what `end_scope` goes back to."""
        return len(self._declared)

    def __contains__(self, name: str) -> bool:
        """Return whether a variable of this name is visible."""
        return name in self._places

    def __getitem__(self, name: str) -> T:
        """Return what is known of the innermost variable of this name; raises KeyError."""
        return self._declared[self._places[name][-1]][1]

    def __setitem__(self, name: str, value: T) -> None:
        """Change the innermost variable of this name; raises KeyError."""
        self._declared[self._places[name][-1]] = name, value

    def declare(self, name: str, value: T) -> None:
        """Add a variable, which hides others of its name."""
        self._places.setdefault(name, []).append(len(self._declared))
        self._declared.append((name, value))

    def end_scope(self, length: int) -> None:
        """Forget the variables that were declared since there were so many."""
        while len(self._declared) > length:
            name, _ = self._declared.pop()
            places = self._places[name]
            places.pop()
            if not places:
                del self._places[name]
