"""A request to reduce selections of variables, and its answer in the axes of a leaf."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import Usage
from .._expressions.evaluation import arrange_axes
from .._expressions.takes import IndexList
from .canonical import Canonical
from .not_pushed import NotPushed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._variables.variable import RegularTake, Variable
    from .inputs import Inputs


@dataclass(frozen=True)
class Request:
    """A request. Its axes are the axes of the file that no integer selects."""

    variable: Variable
    taken: tuple[RegularTake, ...]
    #: Expression that is computed for each element; ``None`` for the element itself.
    text: str | None
    op: str
    skipna: bool
    #: Axes that are reduced.
    axes: tuple[int, ...]
    #: Axes with the group of each element (-1 for none) and the number of groups.
    groups: tuple[tuple[int, NDArray[Any], int], ...] = ()
    #: Axes with the length of their windows.
    windows: tuple[tuple[int, int], ...] = ()
    #: Axes with the weight of each element.
    weights: tuple[tuple[int, NDArray[Any]], ...] = ()
    #: Fractions of quantiles.
    numbers: tuple[float, ...] = ()
    #: Inputs of the expression.
    inputs: Inputs | None = None

    @property
    def key(self) -> Hashable:
        """Equal for requests with equal answers about one variable."""
        groups = tuple((axis, labels.tobytes(), count) for axis, labels, count in self.groups)
        weights = tuple((axis, values.tobytes()) for axis, values in self.weights)
        beside = self.inputs and self.inputs.key
        asked = self.taken, self.text, self.op, self.skipna, self.axes, self.windows, self.numbers
        return *asked, groups, weights, beside

    def remembered_answer(self) -> dict[str, NDArray[Any]] | None:
        """Returns the answer from the cache, or ``None``."""
        return self.variable.cached_answer(self.key)

    def send(self, *, remember: bool = True) -> dict[str, NDArray[Any]]:
        """Returns the arrays of the answer by name, from the cache or from storage nodes.

        ``remember`` keeps it in the cache.

        Raises :class:`NotPushed` if storage nodes do not support the request, and :class:`DataError` if the data
        allow no answer.
        """
        if _dry.get():
            raise _WouldSend
        asked = {
            "variables": self.inputs.variables() if self.inputs else [],
            "constants": self.inputs.sent_constants() if self.inputs else [],
            "taken": list(self.taken),
            "expr": self.text,
            "op": self.op,
            "numbers": list(self.numbers),
            "axes": list(self.axes),
            "skipna": self.skipna,
            "ddof": 0,
            "weights": [(axis, values.tolist()) for axis, values in self.weights],
            "groups": [(axis, labels.tolist(), count) for axis, labels, count in self.groups],
            "windows": list(self.windows),
            "place": "auto",
            "lanes": None,
            "timeout": None,
        }
        try:
            return self.variable.reduce(asked, self.key if remember else None)
        except Usage as error:
            raise NotPushed(str(error)) from error


#: If true, a request raises _WouldSend instead of being sent.
_dry: ContextVar[bool] = ContextVar("gristmill_dry", default=False)


class _WouldSend(Exception):
    """A request would be sent at this point."""


def is_pushed(ask: Callable[[], Any]) -> bool:
    """Returns whether ``ask`` would send a request, as far as this process can know. Nothing is sent."""
    before = _dry.set(True)
    try:
        ask()
    except NotPushed:
        return False
    except _WouldSend:
        pass
    finally:
        _dry.reset(before)
    return True


def group_labels(take: Any, mask: NDArray[Any] | None) -> NDArray[np.int64]:
    """Returns the label of each element of the selected slice: 0 for selected elements that are not masked, else -1.

    Raises :class:`NotPushed` if an element is selected several times.
    """
    if not isinstance(take, IndexList):
        assert mask is not None
        return np.where(mask, 0, -1)
    start, stop, _ = take.hull()
    found = np.full(stop - start, -1)
    at = take.indices - start
    if len(np.unique(at)) != len(at):
        raise NotPushed("an element is picked several times")
    found[at if mask is None else at[mask]] = 0
    return found


def arrange_answer(
    values: NDArray[Any], what: Canonical, left: list[int], grouped: dict[int, int], reduced: set[int]
) -> NDArray[Any]:
    """Moves an array of an answer into the order of the axes of the leaf that are not reduced.

    ``left`` are the axes of the file that the array has. ``grouped`` has the group to select along some of them.
    """
    leaf = what.leaf
    for at, axis in reversed(list(enumerate(left))):
        take = leaf.takes[axis]
        if axis in grouped:
            values = values[(slice(None),) * at + (grouped[axis],)]
        elif isinstance(take, IndexList):
            values = values[(slice(None),) * at + (take.indices - take.hull()[0],)]
    left = [axis for axis in left if axis not in grouped]
    values = arrange_axes(values, leaf, left)
    # arrange_axes also adds axes that the file does not have and that are reduced.
    drop: list[int] = []
    at = 0
    for i, of_file in enumerate(leaf.axes):
        if of_file is None and i in reduced:
            drop.append(at)
        at += of_file is None or of_file in left
    return values.squeeze(tuple(drop)) if drop else values
