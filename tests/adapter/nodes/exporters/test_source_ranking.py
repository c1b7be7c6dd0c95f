"""Which sources are trusted, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.exporters.claims import Source
from adapter.nodes.exporters.source_ranking import trusted_sources


def named(number: int) -> Source:
    return (("job", str(number)),)


class CountedNodes(Mapping[Source, set[str]]):
    """The nodes of each source, which counts how often they are looked up."""

    def __init__(self, nodes: Mapping[Source, set[str]]) -> None:
        self.nodes = nodes
        self.lookups = 0

    def __getitem__(self, source: Source) -> set[str]:
        self.lookups += 1
        return self.nodes[source]

    def __iter__(self) -> Iterator[Source]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


def test_each_source_is_looked_at_once_however_many_there_are() -> None:
    """A tenant may invent a source for each of its exporters."""
    covered = CountedNodes({named(number): {f"n{number % 200}"} for number in range(400)})
    found = trusted_sources(tuple(covered), covered)
    assert found == {named(number): None if number < 200 else named(number - 200) for number in range(400)}
    assert covered.lookups == 400


NODES = st.lists(st.sets(st.sampled_from("abcdefghijkl"), max_size=6), max_size=12)


@given(NODES)
def test_a_source_that_is_not_trusted_names_the_one_to_which_most_of_its_nodes_belong(nodes: list[set[str]]) -> None:
    covered = {named(place): each for place, each in enumerate(nodes)}
    found = trusted_sources(tuple(covered), covered)
    for place, source in enumerate(covered):
        before = [other for other in list(covered)[:place] if found[other] is None]
        holders = [next((other for other in before if node in covered[other]), None) for node in covered[source]]
        shares = [holders.count(other) for other in before]
        is_trusted = not covered[source] or sum(shares) < 0.25 * len(covered[source])
        expected = None if is_trusted else before[shares.index(max(shares))]
        assert found[source] == expected
