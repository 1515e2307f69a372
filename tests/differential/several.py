"""Steps that use several variables: products, covariances, and methods of data sets."""

from .steps import Step


def floats_only(state, name):
    return state.ds[name].dtype.kind in "iufb"


def twins(state):
    """Covariances and correlations with another variable."""
    choose = state.choose
    peers = state.peers()
    if state.dataset or not peers or state.kinds() - set("iuf") or not state.exact:
        return None
    other = choose.choice(peers)
    function = choose.choice(["corr", "cov"])
    dims = state.dims()
    over = choose.choice(["", *(f", {dim!r}" for dim in dims)])
    pair = f"x, ds[{other!r}]" if choose.random() < 0.7 else f"ds[{other!r}], x"
    ddof = f", ddof={choose.choice([0, 1])}" if function == "cov" and choose.random() < 0.3 else ""
    if ddof and not over:
        ddof = ", None" + ddof
    more = {"other": other, "over": over, "function": function}
    return Step(f"xr.{function}({pair}{over}{ddof})", "twin", more=more)


def products(state):
    choose = state.choose
    peers = state.peers()
    if state.dataset or not peers or not state.exact or state.kinds() - set("iufb"):
        return None
    other = choose.choice(peers)
    over = choose.choice(["", *(f", dim={dim!r}" for dim in state.dims()), ", dim=..."])
    return Step(f"xr.dot(x, ds[{other!r}]{over})", "linear", more={"other": other})


def of_dataset(state):
    """Takes one variable from a data set."""
    if not state.dataset or not state.x.data_vars:
        return None
    return Step(f"x[{state.choose.choice(sorted(state.x.data_vars))!r}]", "pick")


def put_together(state):
    choose = state.choose
    peers = state.peers()
    if state.dataset or not peers or not state.exact or not state.x.dims:
        return None
    other = choose.choice(peers)
    kind = choose.random()
    if kind < 0.4:
        return Step(f"xr.concat([x, ds[{other!r}]], 'n', join='outer')", "exact")
    if kind < 0.7:
        dim = state.dim()
        return Step(f"xr.concat([x, x], {dim!r})", "pick")
    return Step(f"xr.Dataset({{'one': x, 'two': ds[{other!r}]}})", "beside", more={"as": "one"})


def to_array(state):
    if not state.dataset or len(state.x.data_vars) < 2 or not state.exact:
        return None
    return Step("x.to_array('v')", "pick")


STEPS = [(twins, 1.5), (products, 1), (of_dataset, 0.6), (put_together, 0.7), (to_array, 0.5)]
