"""The parts of programs: lines of Python, and the effect of each on the digits of numbers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr


@dataclass(frozen=True)
class Step:
    """A line ``name = text``. ``kind`` is the class of its rounding (see ``bounds``). ``size`` is an expression for the size of
    the elements of each cell, if the text itself is not that expression."""

    text: str
    kind: str
    name: str = "x"
    size: str | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def line(self):
        return f"{self.name} = {self.text}"


#: After a step of these kinds the bits may differ from those of NumPy, and the number is still right.
INEXACT = {"linear", "spread", "twin", "product", "quantile", "ulps"}


class State:
    """The state of a program while it is made: its names and their values in xarray."""

    def __init__(self, choose, ds):
        self.choose = choose
        self.ds = ds
        self.names = {"ds": ds, "np": np, "xr": xr}
        self.exact = True

    @property
    def x(self):
        return self.names["x"]

    @property
    def dataset(self):
        return isinstance(self.x, xr.Dataset)

    def kinds(self):
        """The kinds of NumPy types in `x`."""
        return {one.dtype.kind for one in self.x.data_vars.values()} if self.dataset else {self.x.dtype.kind}

    def dims(self):
        # The order of the dimensions of a data set may differ from process to process.
        return sorted(self.x.sizes, key=str) if self.dataset else list(self.x.sizes)

    def dim(self):
        """A random dimension, or None."""
        dims = self.dims()
        return self.choose.choice(dims) if dims else None

    def some_dims(self):
        """A random set of dimensions to reduce, as Python: one, several or all."""
        dims, choose = self.dims(), self.choose
        kind = choose.random()
        if not dims or kind < 0.2:
            return choose.choice(["", "", "...", "None"])
        if kind < 0.7:
            return repr(choose.choice(dims))
        return repr(choose.sample(dims, choose.randint(1, len(dims))))

    def number(self):
        """A random number for comparisons or arithmetic, as Python."""
        choose = self.choose
        if choose.random() < 0.4:
            value = self.middle()
            if value is not None:
                return value
        return choose.choice(
            "0 1 2 -1 3 0.5 -2.5 0.1 273.15 1e3 np.float32(0.1) np.float64(3.3) np.int16(4) np.int64(9) True".split()
        )

    def middle(self):
        """One of the elements, so that comparisons have both results."""
        x = self.x
        if self.dataset or not self.exact or x.size == 0 or x.dtype.kind not in "iuf" or not x.ndim:
            return None
        value = x.values.ravel()[self.choose.randrange(x.size)]
        if not np.isfinite(value):
            return None
        return f"np.{value.dtype.name}({value.item()!r})" if self.choose.random() < 0.4 else repr(value.item())

    def peers(self):
        """Names of variables of the data set that can be combined with ``x``."""
        # Zarr lists variables in the order of the folder.
        return sorted(name for name, one in self.ds.data_vars.items() if one.dtype.kind in "iufb")


def arguments(*given):
    """The arguments of a call, without the empty ones."""
    return ", ".join(one for one in given if one)
