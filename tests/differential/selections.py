"""Steps that pick elements, and steps that only change the shape."""

from .steps import Step


def by_place(state):
    dim, choose = state.dim(), state.choose
    if dim is None:
        return None
    size = state.x.sizes[dim]
    kind = choose.random()
    if kind < 0.2 and size:
        return Step(f"x.isel({dim}={choose.randrange(-size, size)})", "pick")
    if kind < 0.6:
        ends = [None, *range(-size - 1, size + 2)]
        step = choose.choice([None, 1, 2, 3, -1, -2, -3])
        # If the start lies before the array and the step is negative, dask takes the first element and NumPy takes none.
        start = choose.choice([end for end in ends if end is None or end >= -size])
        return Step(f"x.isel({dim}=slice({start}, {choose.choice(ends)}, {step}))", "pick")
    if kind < 0.8:
        count = choose.choice([0, 1, 2, 3, size])
        places = [choose.randrange(-size, size) for _ in range(count if size else 0)]
        if choose.random() < 0.5:
            places = sorted({place % size for place in places})
        return Step(f"x.isel({dim}=np.array({places}, int))", "pick")
    mask = [choose.random() < 0.6 for _ in range(size)]
    return Step(f"x.isel({dim}=np.array({mask}, bool))", "pick")


def pointwise(state):
    dims, choose = state.dims(), state.choose
    if len(dims) < 2 or 0 in state.x.sizes.values():
        return None
    pair = choose.sample(dims, 2)
    count = choose.randint(1, 4)
    picked = (
        f"{dim}=xr.DataArray({[choose.randrange(state.x.sizes[dim]) for _ in range(count)]}, dims='p')" for dim in pair
    )
    return Step(f"x.isel({', '.join(picked)})", "pick")


def by_label(state):
    dim, choose = state.dim(), state.choose
    if dim is None or dim not in state.x.indexes or not state.x.sizes[dim]:
        return None
    at = [choose.randrange(state.x.sizes[dim]) for _ in range(2)]
    labels = [f"x[{dim!r}].values[{one}]" for one in at]
    kind = choose.random()
    if kind < 0.4:
        return Step(f"x.sel({dim}=slice({labels[0]}, {labels[1]}))", "pick")
    if kind < 0.6:
        return Step(f"x.sel({dim}=[{labels[0]}, {labels[1]}])", "pick")
    if kind < 0.75:
        return Step(f"x.sel({dim}={labels[0]})", "pick")
    if dim == "time" and choose.random() < 0.3:
        return Step(f"x.sel(time=x['time.month'].isin([1, {choose.randint(2, 12)}]))", "pick")
    if dim == "time":
        return Step(f"x.sel(time={choose.choice(['2000', '2000-02', '2001-01', '2000-12'])!r})", "pick")
    return Step(f"x.sel({dim}={choose.choice([1, 10, -3.5, 40])}, method='nearest')", "pick")


def ends(state):
    dim, choose = state.dim(), state.choose
    if dim is None:
        return None
    method = choose.choice(["head", "tail", "thin"])
    return Step(f"x.{method}({dim}={choose.randint(1, 3)})", "pick")


def masked(state):
    """Masks of a condition on the elements, on another variable or on labels."""
    choose = state.choose
    if not state.exact or state.kinds() - set("iufb"):
        return None
    kind = choose.random()
    compare = choose.choice(["<", ">", "<=", ">=", "!=", "=="])
    condition = f"x {compare} {state.number()}"
    dim = state.dim()
    if kind < 0.25 and state.peers():
        condition = f"ds[{choose.choice(state.peers())!r}] {compare} {state.number()}"
    elif kind < 0.4 and dim is not None:
        mask = [choose.random() < 0.6 for _ in range(state.x.sizes[dim])]
        condition = f"xr.DataArray(np.array({mask}, bool), dims={dim!r})"
    elif kind < 0.5 and dim in state.x.indexes and dim != "time":
        condition = f"x[{dim!r}] {compare} {choose.choice([0, 1, 2, 10, -3.5])}"
    elif kind < 0.55 and "time" in state.x.indexes and "time" in state.x.dims:
        condition = f"x['time.month'] {compare} {choose.choice([1, 2, 3, 6])}"
    elif kind < 0.62 and dim is not None:
        condition = f"x {choose.choice(['==', '>=', '<'])} x.{choose.choice(['max', 'min', 'median'])}({dim!r})"
    elif kind < 0.7:
        joined = choose.choice(["&", "|"])
        condition = f"(x {compare} {state.number()}) {joined} (x {choose.choice(['<', '>='])} {state.number()})"
    elif kind < 0.75:
        condition = choose.choice(["x.notnull()", "x.isnull()", "~(x > 1)"])
    other = choose.choice(["", "", "", "drop=True", "0", "-1.5", "np.float32(7)", "x * 2"])
    return Step(f"x.where({arguments_of(condition, other)})", "exact")


def arguments_of(*given):
    return ", ".join(one for one in given if one)


def dropped(state):
    dim, choose = state.dim(), state.choose
    if dim is None or not state.exact:
        return None
    how = choose.choice(["", ", how='all'", f", thresh={choose.randint(1, 4)}"])
    return Step(f"x.dropna({dim!r}{how})", "exact")


def shape(state):
    """The same elements in another order or with other dimensions."""
    dims, choose = state.dims(), state.choose
    kind = choose.randrange(8)
    if kind == 0 and dims:
        order = choose.sample(dims, len(dims))
        return Step(f"x.transpose({', '.join(map(repr, order))})", "pick")
    if kind == 1:
        count = choose.randint(1, 3)
        axis = "" if state.dataset or choose.random() < 0.5 else f", axis={choose.randint(0, len(dims))}"
        return Step(f"x.expand_dims(z={count}{axis})", "pick") if "z" not in state.x.coords else None
    if kind == 2 and len(dims) > 1:
        pair = tuple(choose.sample(dims, 2))
        return Step(f"x.stack(s={pair!r})", "pick") if "s" not in state.x.coords else None
    if kind == 3:
        return Step("x.squeeze()", "pick")
    if kind == 4 and dims:
        return Step(f"x.roll({choose.choice(dims)}={choose.randint(-2, 3)})", "pick")
    if kind == 5 and dims and state.kinds() <= set("iuf") and state.exact:
        return Step(f"x.shift({choose.choice(dims)}={choose.randint(-2, 3)})", "exact")
    if kind == 6 and dims:
        dim = choose.choice(dims)
        return Step(f"x.sortby({dim!r}, ascending={choose.random() < 0.5})", "pick") if dim in state.x.coords else None
    if kind == 7 and dims:
        dim = choose.choice(dims)
        return Step(f"x.rename({dim}='{dim}2')", "pick") if dim not in ("time",) and choose.random() < 0.3 else None
    return None


def moved(state):
    """Steps that change labels, make gaps or change edges."""
    dims, choose = state.dims(), state.choose
    if not dims or not state.exact or state.kinds() - set("iuf"):
        return None
    dim, kind = choose.choice(dims), choose.randrange(4)
    if kind == 0:
        mode = choose.choice(["mode='edge'", "constant_values=0", "constant_values=-1"])
        return Step(f"x.pad({dim}=({choose.randint(0, 2)}, {choose.randint(0, 2)}), {mode})", "exact")
    if kind == 1 and dim in state.x.indexes and dim in ("x", "y"):
        return Step(f"x.reindex({dim}=[0, 10, 1, -3.5])", "exact")
    if kind == 2 and state.x.sizes[dim]:
        return Step(f"x.isel({{{dim!r}: {choose.randrange(state.x.sizes[dim])}}}, drop=True)", "pick")
    return Step(f"x.interpolate_na({dim!r}, use_coordinate=False)", "ulps") if kind == 3 and not state.dataset else None


STEPS = [(by_place, 5), (pointwise, 0.7), (by_label, 2.5), (ends, 0.7), (masked, 4), (dropped, 1), (shape, 2.5), (moved, 0.8)]
