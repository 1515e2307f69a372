"""Random data sets: dimensions, coordinates and variables."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np

from .variables import Stored, stored, variable

FORMATS = ("NETCDF4", "NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "zarr2", "zarr3")
CALENDARS = ("standard", "standard", "noleap", "360_day", "proleptic_gregorian")
#: Lengths of dimensions. Short ones come often, because mistakes are likely at edges.
LENGTHS = (1, 2, 3, 4, 5, 5, 7, 8, 11, 17)
MAX_VARIABLES = 4


@dataclass(frozen=True)
class Made:
    """A data set in the form in which it is stored."""

    form: str
    sizes: dict[str, int]
    variables: tuple[Stored, ...]
    unlimited: tuple[str, ...] = ()

    @property
    def suffix(self):
        return ".zarr" if self.form.startswith("zarr") else ".nc"

    def only(self, names):
        """The same data set with only these variables and the coordinates."""
        kept = tuple(one for one in self.variables if one.name in names or one.name in self.sizes)
        return Made(self.form, self.sizes, kept, self.unlimited)


def make(seed, number):
    """The data set with this number of a seed."""
    choose = Random(f"data {seed} {number}")
    rng = np.random.default_rng(choose.getrandbits(64))
    form = choose.choice(FORMATS)
    dims = ["time", "y", "x", "k"][: choose.choice([1, 2, 3, 3, 3, 3, 4])]
    if choose.random() < 0.3:
        choose.shuffle(dims)
    sizes = {dim: choose.choice(LENGTHS) for dim in dims}
    if "time" in sizes and choose.random() < 0.6:
        sizes["time"] = choose.choice([6, 13, 24, 30])
    if choose.random() < 0.04:
        # In netCDF-3 only an unlimited dimension can be empty, and only the first one can be unlimited.
        sizes[dims[0] if form.startswith("NETCDF3") else choose.choice(dims)] = 0
    variables = [coordinate(rng, choose, form, dim, size) for dim, size in sizes.items() if choose.random() < 0.85]
    for name in "abcd"[: choose.randint(1, MAX_VARIABLES)]:
        within = [dim for dim in dims if choose.random() < 0.9]
        if choose.random() < 0.03:
            within = []
        if choose.random() < 0.1:
            choose.shuffle(within)
        variables.append(variable(rng, choose, form, name, tuple(within), sizes))
    variables += auxiliary(rng, choose, form, dims, sizes)
    variables = beside(choose, variables)
    first = dims[0]
    unlimited = ()
    if form == "NETCDF4" and choose.random() < 0.3:
        unlimited = (first,)
        # A variable with an unlimited dimension is stored in chunks.
        variables = [one if one.chunks or first not in one.dims else stored_in_chunks(one) for one in variables]
    if form.startswith("NETCDF3") and (not sizes[first] or choose.random() < 0.5):
        # In netCDF-3 the unlimited dimension must be the first one of each variable.
        variables = [one if first not in one.dims[1:] else first_of_all(one, first) for one in variables]
        unlimited = (first,)
    return Made(form, sizes, tuple(variables), unlimited)


def auxiliary(rng, choose, form, dims, sizes):
    """Coordinates with two dimensions, and with none."""
    made = []
    if choose.random() < 0.15 and len(dims) > 1:
        pair = tuple(choose.sample(dims, 2))
        made.append(Stored("place", pair, rng.normal(0, 30, [sizes[dim] for dim in pair])))
    if choose.random() < 0.1:
        made.append(Stored("height", (), np.array(2.0)))
    return [stored(choose, form, one) for one in made]


def beside(choose, variables):
    """Adds the attribute `coordinates`, with the names of these coordinates, to the variables that have their dimensions."""
    extra = [one for one in variables if one.name in ("place", "height")]
    named = []
    for one in variables:
        names = [more.name for more in extra if set(more.dims) <= set(one.dims)]
        if one.name in "abcd" and names:
            one = replace(one, attrs=one.attrs | {"coordinates": " ".join(names)})
        named.append(one)
    return named


def stored_in_chunks(one):
    return Stored(one.name, one.dims, one.values, one.attrs, tuple(max(1, n) for n in one.values.shape), one.codec)


def first_of_all(one, dim):
    """Moves a dimension to the front."""
    at = one.dims.index(dim)
    dims = (dim, *one.dims[:at], *one.dims[at + 1 :])
    return replace(one, dims=dims, values=np.ascontiguousarray(np.moveaxis(one.values, at, 0)))


def coordinate(rng, choose, form, dim, size):
    """The labels of a dimension."""
    if dim == "time":
        first, step = choose.randrange(400), choose.choice([1, 10, 30, 31])
        days = first + step * np.arange(size)
        attrs = {"units": "days since 2000-01-01", "calendar": choose.choice(CALENDARS)}
        if not size:
            # For an empty time xarray reads no other calendar.
            attrs["calendar"] = "standard"
        return Stored(dim, (dim,), days.astype(choose.choice(["i4", "f8"])), attrs)
    if choose.random() < 0.5:
        values = np.arange(size) * choose.choice([1, 10]) + choose.choice([0, -2])
        if choose.random() < 0.2:
            values = values[::-1]
        values = values.astype("i4")
    else:
        values = np.linspace(-82.5, 82.5, size) if size else np.zeros(0)
        if choose.random() < 0.2:
            values = rng.permutation(values)
        values = values.astype(choose.choice(["f4", "f8"]))
    return stored(choose, "", Stored(dim, (dim,), values, {"long_name": dim}))
