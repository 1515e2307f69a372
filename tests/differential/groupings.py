"""Steps that reduce within groups, bins of time or windows, or with weights."""

import numpy as np

from .steps import Step, arguments

#: The rounding class of each method of a group, and an expression for the size of the elements of a cell.
METHODS = {
    "sum": "linear",
    "mean": "linear",
    "min": "ends",
    "max": "ends",
    "count": "count",
    "std": "spread",
    "var": "spread",
    "any": "count",
    "all": "count",
    "median": "ends",
    "first": "ends",
    "last": "ends",
    "prod": "product",
}
WINDOWS = ("sum", "mean", "min", "max", "count", "std", "var", "any", "all", "median")


def numbers(state):
    return not state.kinds() - set("iufb")


def method(state, names=tuple(METHODS)):
    """A method and its kind. Counts of values that are not exact are left out."""
    choose = state.choose
    name = choose.choice([*names, "mean", "sum", "mean", "std"])
    kind = METHODS[name]
    if not state.exact and kind in ("count", "product"):
        return None, None
    if kind == "linear" and name == "sum" and not state.kinds() & set("f"):
        kind = "count"
    return name, kind


def reduced(state, before, names=tuple(METHODS)):
    choose = state.choose
    name, kind = method(state, names)
    if name is None:
        return None
    if name == "sum" and kind == "count" and before.endswith("boundary='pad')"):
        # Integers become floats if some of them are missing.
        kind = "linear"
    given = []
    if name not in ("count", "any", "all", "first", "last") and choose.random() < 0.2:
        given.append(f"skipna={choose.choice(['True', 'False'])}")
    size = f"{before}.mean({arguments(*given)})" if kind == "spread" else None
    if kind == "spread" and choose.random() < 0.3:
        given.append(f"ddof={choose.choice([0, 1])}")
    return Step(f"{before}.{name}({arguments(*given)})", kind, size=size)


def grouped(state):
    choose, dims = state.choose, state.dims()
    if not numbers(state) or not dims:
        return None
    dim = choose.choice(dims)
    size = state.x.sizes[dim]
    whole = [name for name in state.peers() if state.ds[name].dtype.kind in "iub" and 0 < state.ds[name].ndim]
    if whole and choose.random() < 0.12 and state.exact and set(state.ds[whole[0]].dims) <= set(dims):
        if len(np.unique(state.ds[whole[0]].values)) > 12:
            return None
        return reduced(state, f"x.groupby(ds[{whole[0]!r}])")
    if dim == "time" and "time" in state.x.coords and choose.random() < 0.6:
        by = repr(choose.choice(["time.month", "time.year", "time.season", "time.dayofyear"]))
    elif dim in state.x.coords and choose.random() < 0.3 and size:
        by = repr(dim)
        if choose.random() < 0.4 and dim != "time":
            return reduced(state, f"x.groupby_bins({by}, {choose.choice([2, 3])})")
    else:
        labels = [choose.randrange(3) for _ in range(size)]
        name = "g" if choose.random() < 0.8 else "other"
        by = f"xr.DataArray(np.array({labels}, int), dims={dim!r}, name={name!r})"
    return reduced(state, f"x.groupby({by})")


def departures(state):
    """The distance of each element from the mean of its group."""
    if state.kinds() != {"f"} or "time" not in state.x.indexes or state.dataset or "g" in state.names:
        return None
    by = state.choose.choice(["time.month", "time.year"])
    first = Step(f"x.groupby({by!r}).mean()", "linear", "g")
    return [first, Step(f"x.groupby({by!r}) - g", "apart", more={"other": "g"})]


def resampled(state):
    choose = state.choose
    if not numbers(state) or "time" not in state.x.indexes or "time" not in state.x.dims:
        return None
    length = choose.choice(["MS", "QS-DEC", "YS", "ME", "15D", "3MS", "40D"])
    return reduced(state, f"x.resample(time={length!r})")


def coarsened(state):
    choose, dims = state.choose, state.dims()
    if not numbers(state) or not dims or not all(state.x.sizes.values()):
        return None
    picked = choose.sample(dims, choose.randint(1, min(2, len(dims))))
    windows = ", ".join(f"{dim}={choose.randint(1, min(4, max(1, state.x.sizes[dim])))}" for dim in picked)
    boundary = choose.choice(["trim", "trim", "pad", "exact"])
    return reduced(state, f"x.coarsen({windows}, boundary={boundary!r})", WINDOWS)


def weighted(state):
    choose, dims = state.choose, state.dims()
    if not numbers(state) or not dims:
        return None
    dim = choose.choice(dims)
    kind = choose.random()
    weights = [choose.choice([0, 1, 1, 2, 0.5, 0.25]) for _ in range(state.x.sizes[dim])]
    if kind < 0.6 or not state.exact or dim not in state.x.coords or dim == "time":
        dtype = choose.choice(["f8", "f8", "f4", "i4"])
        by = f"xr.DataArray(np.array({weights}).astype({dtype!r}), dims={dim!r})"
    elif kind < 0.7 and state.peers():
        by = f"abs(ds[{choose.choice(state.peers())!r}].fillna(0))"
    elif kind < 0.85:
        by = f"np.cos(np.deg2rad(x[{dim!r}]))"
    else:
        by = f"abs(x[{dim!r}]).fillna(0)"
    name = choose.choice(["mean", "mean", "sum", "std", "var", "sum_of_weights"])
    over = state.some_dims()
    kind = {"std": "spread", "var": "spread", "sum_of_weights": "linear"}.get(name, "linear")
    if name == "sum_of_weights" and not state.exact:
        return None
    more = {"by": by, "turned": True} if name == "sum_of_weights" else {"by": by}
    size = f"x.weighted({by}).mean({over})" if kind == "spread" else None
    return Step(f"x.weighted({by}).{name}({arguments(over)})", kind, size=size, more=more)


def percentiles(state):
    """Weighted quantiles and quantiles of groups. Gristmill reads the elements for them."""
    dim, choose = state.dim(), state.choose
    if dim is None or not numbers(state) or not state.exact or not state.x.sizes[dim]:
        return None
    if dim == "time" and "time" in state.x.indexes:
        return Step("x.groupby('time.month').quantile(0.25)", "quantile", size="x.groupby('time.month').max()")
    weights = np.array([choose.choice([1, 2, 0.5]) for _ in range(state.x.sizes[dim])]).tolist()
    by = f"xr.DataArray(np.array({weights}), dims={dim!r})"
    return Step(f"x.weighted({by}).quantile(0.5, {dim!r})", "quantile", size=f"x.max({dim!r})")


STEPS = [(grouped, 2.5), (departures, 0.6), (resampled, 1.8), (coarsened, 2.5), (weighted, 2.5), (percentiles, 0.3)]
