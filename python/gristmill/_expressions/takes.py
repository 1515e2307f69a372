"""Selections of an axis of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The selection of an axis of a file: an index, a slice as start, stop and step, or a list of indices.
Take = Union[int, tuple[int, int, int], "IndexList"]


class IndexList:
    """A selection of the elements of an axis at these indices, in this order."""

    def __init__(self, indices: NDArray[Any]) -> None:
        self.indices = indices
        self.key = ("picked", indices.tobytes())

    def __len__(self) -> int:
        return len(self.indices)

    def hull(self) -> tuple[int, int, int]:
        """Returns the smallest slice of step 1 that contains all indices."""
        return int(self.indices.min()), int(self.indices.max()) + 1, 1


def take_length(take: Take) -> int:
    """Returns the number of selected elements."""
    if isinstance(take, IndexList):
        return len(take)
    if isinstance(take, int):
        return 1
    return len(range(*take))
