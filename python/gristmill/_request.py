"""One request about parts of variables, and its answer in the order of the axes of a leaf."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._canonical import Canonical, NotPushed
from ._errors import Usage
from ._evaluate import arranged
from ._expr import Picked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._inputs import Inputs
    from ._source import Taken, Variable


@dataclass(frozen=True)
class Request:
    """What is asked. Axes are those of what is taken, without the ones of which one index was taken."""

    variable: Variable
    taken: tuple[Taken, ...]
    #: What is computed of each element; ``None`` for the element.
    text: str | None
    op: str
    skipna: bool
    #: Axes that are reduced.
    axes: tuple[int, ...]
    #: Axes with the group of each element, -1 for none, and how many groups there are.
    groups: tuple[tuple[int, NDArray[Any], int], ...] = ()
    #: Axes with the length of a window.
    windows: tuple[tuple[int, int], ...] = ()
    #: Axes with a number for each element.
    weights: tuple[tuple[int, NDArray[Any]], ...] = ()
    #: Shares of quantiles.
    numbers: tuple[float, ...] = ()
    #: What is read beside the variable.
    inputs: Inputs | None = None

    @property
    def key(self) -> Hashable:
        """Equal for requests with equal answers about one variable."""
        groups = tuple((axis, labels.tobytes(), count) for axis, labels, count in self.groups)
        weights = tuple((axis, values.tobytes()) for axis, values in self.weights)
        beside = self.inputs and self.inputs.key
        asked = self.taken, self.text, self.op, self.skipna, self.axes, self.windows, self.numbers
        return *asked, groups, weights, beside

    def known(self) -> dict[str, NDArray[Any]] | None:
        """The answer, if it is remembered."""
        return self.variable.known(self.key)

    def send(self, *, remember: bool = True) -> dict[str, NDArray[Any]]:
        """The arrays of the answer; one that is remembered is not asked for again.

        Raises :class:`NotPushed` where storage nodes do not do this.
        """
        if _dry.get():
            raise _WouldSend
        asked = {
            "variables": self.inputs.variables() if self.inputs else [],
            "constants": self.inputs.given() if self.inputs else [],
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


#: Whether nothing is sent, only found out.
_dry: ContextVar[bool] = ContextVar("gristmill_dry", default=False)


class _WouldSend(Exception):
    """A request would be sent here."""


def is_pushed(ask: Callable[[], Any]) -> bool:
    """Whether storage nodes would be asked, as far as can be known here. Nothing is sent."""
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


def labels(take: Any, mask: NDArray[Any] | None) -> NDArray[np.int64]:
    """The group of each element of the slice that is taken: 0, or -1 for none."""
    if not isinstance(take, Picked):
        assert mask is not None
        return np.where(mask, 0, -1)
    start, stop, _ = take.hull()
    found = np.full(stop - start, -1)
    at = take.indices - start
    if len(np.unique(at)) != len(at):
        raise NotPushed("an element is picked several times")
    found[at if mask is None else at[mask]] = 0
    return found


def placed(
    values: NDArray[Any], what: Canonical, left: list[int], grouped: dict[int, int], reduced: set[int]
) -> NDArray[Any]:
    """An array of an answer, whose axes are ``left``, with the axes of the leaf that are kept, and of those in ``grouped`` one
    group."""
    leaf = what.leaf
    for at, axis in reversed(list(enumerate(left))):
        take = leaf.takes[axis]
        if axis in grouped:
            values = values[(slice(None),) * at + (grouped[axis],)]
        elif isinstance(take, Picked):
            values = values[(slice(None),) * at + (take.indices - take.hull()[0],)]
    left = [axis for axis in left if axis not in grouped]
    values = arranged(values, leaf, left)
    # Those that the file does not have are there again, also where they were reduced.
    drop: list[int] = []
    at = 0
    for i, of_file in enumerate(leaf.axes):
        if of_file is None and i in reduced:
            drop.append(at)
        at += of_file is None or of_file in left
    return values.squeeze(tuple(drop)) if drop else values
