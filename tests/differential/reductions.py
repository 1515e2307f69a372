"""Steps that reduce: sums, means, spreads, extremes, indices, medians."""

from .steps import Step, arguments


def numbers(state):
    return not state.kinds() - set("iufb")


def floats(state):
    return state.kinds() == {"f"}


def options(state, *names):
    """Random keywords of a reduction."""
    choose = state.choose
    given = []
    if "skipna" in names and choose.random() < 0.3:
        given.append(f"skipna={choose.choice(['True', 'False', 'None'])}")
    if "min_count" in names and choose.random() < 0.15:
        given.append(f"min_count={choose.choice([0, 1, 2, 5])}")
    if "ddof" in names and choose.random() < 0.4:
        given.append(f"ddof={choose.choice([0, 1, 2])}")
    if choose.random() < 0.1:
        given.append(f"keep_attrs={choose.choice(['True', 'False'])}")
    return given


def linear(state):
    choose = state.choose
    if not numbers(state):
        return None
    method = choose.choice(["sum", "mean"])
    over = state.some_dims()
    given = options(state, "skipna", *(["min_count"] if method == "sum" else []))
    kind = "linear" if state.kinds() & set("f") or method == "mean" else "count"
    return Step(f"x.{method}({arguments(over, *given)})", kind)


def spread(state):
    choose = state.choose
    if not numbers(state):
        return None
    method = choose.choice(["std", "var"])
    over = state.some_dims()
    given = options(state, "skipna", "ddof")
    skipna = [one for one in given if one.startswith("skipna")]
    return Step(f"x.{method}({arguments(over, *given)})", "spread", size=f"x.mean({arguments(over, *skipna)})")


def ends(state):
    choose = state.choose
    if not numbers(state):
        return None
    method = choose.choice(["min", "max", "min", "max", "median"])
    return Step(f"x.{method}({arguments(state.some_dims(), *options(state, 'skipna'))})", "ends")


def counted(state):
    choose = state.choose
    if not numbers(state) or not state.exact:
        return None
    method = choose.choice(["count", "any", "all"])
    return Step(f"x.{method}({arguments(state.some_dims(), *options(state))})", "count")


def places(state):
    choose, dim = state.choose, state.dim()
    if not numbers(state) or not state.exact or dim is None:
        return None
    method = choose.choice(["argmin", "argmax", "idxmin", "idxmax"])
    if method.startswith("idx"):
        more = choose.choice(["", "", "skipna=True", "skipna=False", "fill_value=-1"])
        return Step(f"x.{method}({arguments(repr(dim), more)})", "count")
    over = choose.choice([repr(dim), repr(dim), "dim=...", "", repr([dim])])
    text = f"x.{method}({arguments(over, *options(state, 'skipna'))})"
    if over == "dim=..." or over.startswith("["):
        # The result is a dictionary with the index on each axis.
        text = f"xr.Dataset({text})" if not state.dataset else text
    return Step(text, "count")


def quantile(state):
    choose = state.choose
    if not numbers(state):
        return None
    q = choose.choice(["0.5", "0.25", "[0.1, 0.9]", "0", "1", "[0.5]", "0.33"])
    method = choose.choice(["", "", "", "method='nearest'", "method='lower'", "method='hazen'"])
    over = state.some_dims()
    text = f"x.quantile({arguments(q, over, method, *options(state, 'skipna'))})"
    return Step(text, "quantile", size=f"x.max({over})")


def product(state):
    if not numbers(state) or not state.exact:
        return None
    kind = "product" if state.kinds() & set("f") else "count"
    return Step(f"x.prod({arguments(state.some_dims(), *options(state, 'skipna', 'min_count'))})", kind)


def combined(state):
    """Combinations of reductions that people write."""
    choose, dim = state.choose, state.dim()
    if not numbers(state) or not state.exact or dim is None:
        return None
    number = state.number()
    made = [
        Step(f"x.max({dim!r}) - x.min({dim!r})", "exact"),
        Step(f"(x > {number}).sum({dim!r})", "count"),
        Step(f"(x > {number}).mean({dim!r})", "exact"),
        Step(f"x.where(x > {number}).mean({dim!r})", "linear"),
        Step(f"x.notnull().sum({dim!r})", "count"),
        Step(f"x.reduce(np.nansum, {dim!r})", "linear") if floats(state) else None,
        Step(f"x.reduce(np.max, {dim!r})", "ends"),
        Step(f"np.abs(x).max({dim!r})", "ends"),
        Step(f"(x * x).sum({dim!r})", "linear") if floats(state) else None,
        Step(f"x.isel({dim}=slice(1, None)).count()", "count"),
        Step(f"x.sum({dim!r}) > {number}", "count") if not floats(state) else None,
    ]
    return choose.choice(made)


def running(state):
    """Running sums, windows and ranks. Gristmill does not reduce them; it reads the elements and computes."""
    choose, dim = state.choose, state.dim()
    if not numbers(state) or dim is None or not state.exact:
        return None
    size = state.x.sizes[dim]
    kind = choose.randrange(4)
    if kind == 0:
        return Step(f"x.cumsum({dim!r})", "running" if state.kinds() & set("f") else "count")
    if kind == 1 and size:
        method = choose.choice(["mean", "sum", "max", "min", "count", "std"])
        more = choose.choice(["", ", min_periods=1", ", center=True"])
        window = choose.randint(1, max(1, min(size, 4)))
        exact = method in ("max", "min", "count")
        return Step(f"x.rolling({dim}={window}{more}).{method}()", "ends" if exact else "running")
    if kind == 2:
        return Step(f"x.{choose.choice(['ffill', 'bfill'])}({dim!r})", "exact") if floats(state) else None
    return Step(f"x.rank({dim!r})", "exact") if not state.dataset else None


STEPS = [
    (linear, 5),
    (spread, 3),
    (ends, 3),
    (counted, 1.5),
    (places, 2),
    (quantile, 1),
    (product, 0.4),
    (running, 0.8),
    (combined, 1.5),
]
