"""Steps that compute a new value from each element."""

import numpy as np

from .steps import Step

UNARY = "np.abs np.negative np.sqrt np.floor np.ceil np.rint np.square np.sign np.isnan np.isfinite np.isinf np.logical_not np.exp"
UNARY = (UNARY + " np.log np.log10 np.sin np.trunc np.reciprocal np.expm1").split()
ULPS = {"np.exp", "np.log", "np.log10", "np.sin", "np.expm1"}
OPERATORS = "+ - * / + - * / // % < > <= >= == !=".split()
BINARY = "np.maximum np.minimum np.fmax np.fmin np.add np.hypot np.arctan2 np.logical_and np.logical_xor np.copysign np.less".split()
BINARY_ULPS = {"np.hypot", "np.arctan2"}
CASTS = "'f4' 'f8' 'f4' 'f8' bool 'i4' 'i8' 'i2' int float 'u1'".split()


def numbers(state):
    return not state.kinds() - set("iufb")


def with_number(state):
    choose = state.choose
    if not numbers(state):
        return None
    number, operator = state.number(), choose.choice(OPERATORS)
    if not state.exact:
        if state.kinds() != {"f"}:
            return None
        operator = choose.choice("+-*/")
        if operator == "/" and number in ("0",):
            return None
        kind = "shift" if operator in "+-" else "scale"
        return Step(f"x {operator} {number}", kind, more={"number": number})
    turned = choose.random() < 0.25
    text = f"{number} {operator} x" if turned else f"x {operator} {number}"
    return Step(text, "exact")


def power(state):
    choose = state.choose
    if not state.exact or not numbers(state):
        return None
    number = choose.choice(["2", "2", "3", "0.5", "-1", "0", "1", "2.0", "1.5", "np.int8(2)", "np.float32(2)"])
    exact = number in ("2", "0.5", "0", "1", "2.0") or "f" not in state.kinds()
    text = f"2 ** x" if choose.random() < 0.1 else f"x ** {number}"
    return Step(text, "exact" if exact and text[0] == "x" else "ulps")


def squared(state):
    return Step("x ** 2", "square") if state.kinds() == {"f"} else None


def unary(state):
    if not numbers(state) or not state.exact:
        return None
    name = state.choose.choice(UNARY)
    return Step(f"{name}(x)", "ulps" if name in ULPS else "exact")


def binary(state):
    choose = state.choose
    if not numbers(state) or not state.exact:
        return None
    name = choose.choice(BINARY)
    peers = state.peers()
    other = f"ds[{choose.choice(peers)!r}]" if peers and choose.random() < 0.5 else state.number()
    pair = ("x", other) if choose.random() < 0.7 else (other, "x")
    return Step(f"{name}({', '.join(pair)})", "ulps" if name in BINARY_ULPS else "exact")


def with_variable(state):
    choose = state.choose
    if not numbers(state) or not state.exact or not state.peers():
        return None
    operator, name = choose.choice(OPERATORS + ["&", "|", "**"]), choose.choice(state.peers())
    text = f"x {operator} ds[{name!r}]" if choose.random() < 0.7 else f"ds[{name!r}] {operator} x"
    return Step(text, "ulps" if operator == "**" else "exact")


def with_array(state):
    """The array is a NumPy array along one dimension."""
    dim, choose = state.dim(), state.choose
    if dim is None or not numbers(state) or not state.exact or dim not in ("y", "x", "time"):
        return None
    dtype = choose.choice(["f8", "f8", "f4", "i4", "bool"])
    values = [choose.choice([0, 1, 2, -1, 0.5, 10]) for _ in range(state.x.sizes[dim])]
    operator = choose.choice("+ - * > + - *".split())
    return Step(f"x {operator} xr.DataArray(np.array({values}).astype({dtype!r}), dims={dim!r})", "exact")


def cast(state):
    choose = state.choose
    if not numbers(state) or not state.exact:
        return None
    wanted = choose.choice(CASTS)
    if np.dtype(eval(wanted)).kind in "iu" and state.kinds() & set("f"):
        # No standard says what an integer cast of a float beyond the integers gives.
        arrays = state.x.data_vars.values() if state.dataset else [state.x]
        info = np.iinfo(np.dtype(eval(wanted)))
        for one in arrays:
            values = one.values
            if values.dtype.kind == "f" and not np.all((values > info.min + 1.0) & (values < info.max - 1.0)):
                return None
    return Step(f"x.astype({wanted})", "exact")


def bounded(state):
    choose = state.choose
    if not numbers(state) or not state.exact:
        return None
    kind = choose.random()
    if kind < 0.4:
        low, high = choose.choice([("-1", "1"), ("0", "None"), ("None", "2"), ("-3.5", "300"), (state.number(), "None")])
        return Step(f"x.clip({low}, {high})", "exact")
    if kind < 0.65:
        return Step(f"x.fillna({choose.choice(['0', '-1.5', '1', 'np.float32(2)', '10'])})", "exact")
    if kind < 0.8:
        return Step(f"x.{choose.choice(['isnull', 'notnull'])}()", "exact")
    if kind < 0.9:
        return Step(f"xr.where(x > {state.number()}, x, {choose.choice(['0', '1.5', 'x + 1'])})", "exact")
    return Step(choose.choice(["x.round(1)", "-x", "abs(x)", "~x", "x.isin([0, 1, 2.5])", "x.round()"]), "exact")


def anomaly(state):
    """Two steps: a reduction with its own name, and the difference of the elements and this reduction."""
    choose = state.choose
    dim = state.dim()
    if state.kinds() != {"f"} or dim is None or "m" in state.names:
        return None
    method = choose.choice(["mean", "mean", "mean", "sum", "max", "median"])
    kind = "linear" if method in ("mean", "sum") else "ends"
    first = Step(f"x.{method}({dim!r})", kind, "m")
    return [first, Step(choose.choice(["x - m", "x - m", "m - x", "x + m"]), "apart")]


def standardised(state):
    """Several steps: the mean, the standard deviation, and the distance of each element from the mean in units of the deviation."""
    dim = state.dim()
    if state.kinds() != {"f"} or dim is None or "m" in state.names or not state.exact:
        return None
    mean = Step(f"x.mean({dim!r})", "linear", "m")
    std = Step(f"x.std({dim!r})", "spread", "s", size=f"x.mean({dim!r})")
    return [mean, std, Step("x - m", "apart"), Step("x / s", "divided", more={"other": "s"})]


def difference(state):
    dim = state.dim()
    if dim is None or not state.kinds() <= set("iuf") or not state.exact:
        return None
    return Step(f"x.diff({dim!r})", "exact")


STEPS = [
    (with_number, 4),
    (power, 1),
    (squared, 0.5),
    (unary, 2),
    (binary, 1),
    (with_variable, 2),
    (with_array, 1),
    (cast, 1.5),
    (bounded, 2),
    (anomaly, 1.2),
    (standardised, 0.4),
    (difference, 0.4),
]
