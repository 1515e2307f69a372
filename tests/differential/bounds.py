"""How far two right numbers may be apart: what a program gives in 80 bits, and a bound that follows from each cell's own elements.

A sum of ``n`` floats that is added up in any order is off by at most ``n eps sum|x|`` (Higham, *Accuracy and Stability of
Numerical Algorithms*, 4.2). So each name of a program has, beside its value, the same in 80 bits and a bound of what the steps
before did to it: those that pick pick of both, those that add up add up the bounds, and add what adding itself may do. A number is
right if it is within the bound of that in 80 bits, wherever xarray's is.
"""

import warnings
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

WIDE = np.longdouble
EPS = float(np.finfo("f8").eps)
#: A bound that every number is within; its square is a number, too.
ANYTHING = WIDE(10) ** 2000
#: NumPy adds pairwise, in blocks of 8 by 128, and rounds some numbers on the way: a few roundings more than elements.
MORE = 4


#: Whether blocks of dask are added up: dask adds and takes means in the type of the elements, block by block, and Gristmill's arrays
#: do as they are told.
OF_BLOCKS = ContextVar("of_blocks", default=False)


class Unbounded(Exception):
    """No bound is known for a step."""


@dataclass
class Near:
    """A value, the same in 80 bits, and how far from that it may be."""

    value: Any
    wide: Any
    error: Any


def of(program, ds, of_blocks=False):
    """The answer of a program with its bound, over blocks of dask if so. Raises :class:`Unbounded`."""
    OF_BLOCKS.set(of_blocks)
    names = {}
    # What is faster knows no numbers of 80 bits.
    slow = xr.set_options(use_flox=False, use_bottleneck=False, use_numbagg=False)
    with warnings.catch_warnings(), np.errstate(all="ignore"), slow:
        warnings.simplefilter("ignore")
        try:
            for step in program.steps:
                # Nothing else fills forwards and backwards, and without flox xarray has no first of several variables.
                flox = step.text.endswith((".first()", ".last()"))
                with xr.set_options(use_bottleneck="fill(" in step.text, use_flox=flox):
                    names[step.name] = fitting(after(step, names, ds))
        except Unbounded:
            raise
        except Exception as error:
            raise Unbounded(f"{step.line}: {error}") from error
    return names["x"]


def fitting(near):
    """With the dimensions of the value, in its order."""
    return Near(near.value, fitted(near.wide, near.value), fitted(near.error, near.value))


def fitted(one, value):
    if isinstance(value, xr.Dataset):
        return one.map(lambda each: fitted(each, value[each.name]), keep_attrs=True)
    if dict(one.sizes) != dict(value.sizes):
        raise Unbounded(f"a bound of {dict(one.sizes)} for {dict(value.sizes)}")
    return one.transpose(*value.dims)


def evaluated(text, ds, **names):
    return eval(text, {"ds": ds, "np": np, "xr": xr, **names})


def floats(value):
    """Whether there is anything that is rounded."""
    if isinstance(value, xr.Dataset):
        return any(one.dtype.kind == "f" for one in value.data_vars.values())
    return value.dtype.kind == "f"


def wide(value):
    """The same in 80 bits; what is no number as it is."""
    if isinstance(value, xr.Dataset):
        return value.map(wide, keep_attrs=True)
    return value.astype(WIDE) if value.dtype.kind in "iufb" else value


def eps_of(value):
    """The rounding of each variable's own type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: xr.DataArray(WIDE(eps_of(one))))
    return float(np.finfo(value.dtype).eps) if value.dtype.kind == "f" else 0.0


def greatest_of(value):
    """The largest number of each variable's own type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: xr.DataArray(WIDE(greatest_of(one))))
    return WIDE(np.finfo(value.dtype).max) if value.dtype.kind == "f" else WIDE(np.inf)


def least_of(value):
    """The least number of each variable's own type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: xr.DataArray(WIDE(least_of(one))))
    return WIDE(np.finfo(value.dtype).smallest_subnormal) if value.dtype.kind == "f" else WIDE(0)


def adding(value):
    """The rounding of sums of a value: that of f8, but over blocks of dask, or where one factor is a small type."""
    return max(EPS, largest(eps_of(value))) if OF_BLOCKS.get() else EPS


def rounded(value, there):
    """What rounding to the type of a value may do, also to its subnormal numbers."""
    return finite(eps_of(value) * abs(there.where(np.isfinite(there)))) + least_of(value)


def without(value):
    """Zeros where a bound of nothing is meant."""
    return xr.zeros_like(wide(value))


def finite(error):
    """A bound with nothing that is missing, which is compared as it is, nor infinite, which times a weight of 0 would be missing."""
    if isinstance(error, xr.Dataset):
        return error.map(finite, keep_attrs=True)
    error = error.fillna(0)
    return error.where(error <= ANYTHING, ANYTHING) if error.dtype.kind == "f" else error


def size_of(value):
    if isinstance(value, xr.Dataset):
        return max((one.size for one in value.data_vars.values()), default=0)
    return value.size


def largest(error):
    if isinstance(error, float):
        return error
    if isinstance(error, xr.Dataset):
        return max((largest(one) for one in error.data_vars.values()), default=0.0)
    return error.max().item() if error.size else 0.0


def like(error, value):
    """A bound for elements that were picked by what they are: their own, or the largest."""
    zeros = finite(without(value))
    if not largest(error):
        return zeros
    try:
        own = finite(zeros + error)
        if own.sizes == value.sizes:
            return own
    except (ValueError, TypeError):
        pass
    return zeros + largest(error)


def after(step, names, ds):
    """What a step makes of what was before."""
    values = {name: one.value for name, one in names.items()}
    value = evaluated(step.text, ds, **values)
    if step.kind in ("start", "count") or "x" not in names:
        return Near(value, wide(value), finite(without(value)))
    x = names["x"]
    if step.kind == "pick":
        wides = {name: one.wide for name, one in names.items()}
        errors = {name: one.error for name, one in names.items()}
        return Near(value, evaluated(step.text, ds, **wides), evaluated(step.text, ds, **errors))
    return KINDS[step.kind](step, value, x, names, ds)


def exact(step, value, x, names, ds):
    """What NumPy computes is what there is: rounded, as everybody rounds it. What is fused rounds once less."""
    return Near(value, wide(value), like(x.error, value) + MORE * eps_of(value) * abs(wide(value)))


def beside(step, value, x, names, ds):
    """A variable of a new data set, beside others that nothing was done with."""
    error = finite(without(value)).assign({step.more["as"]: x.error})
    return Near(value, wide(value).assign({step.more["as"]: x.wide}), error)


def ulps(step, value, x, names, ds):
    return Near(value, wide(value), finite(MORE * 2 * eps_of(value) * abs(wide(value))))


def moved(step, value, x, names, ds):
    """A number is added."""
    there = evaluated(step.text, ds, x=x.wide)
    return Near(value, there, like(x.error, value) + rounded(value, there))


def scaled(step, value, x, names, ds):
    there = evaluated(step.text, ds, x=x.wide)
    error = abs(evaluated(step.text, ds, x=x.error)) if largest(x.error) else finite(without(value))
    return Near(value, there, error + rounded(value, there))


def squared(step, value, x, names, ds):
    there = x.wide**2
    return Near(value, there, 2 * abs(x.wide) * x.error + x.error**2 + rounded(value, there))


def apart(step, value, x, names, ds):
    """A reduction is taken away from the elements."""
    other = names[step.more.get("other", "m")]
    name = step.more.get("other", "m")
    there = evaluated(step.text, ds, x=x.wide, **{name: other.wide})
    plus = step.text.replace(" - ", " + ")
    error = finite(evaluated(plus, ds, x=finite(x.error), **{name: finite(other.error)}))
    return Near(value, there, error + rounded(value, there))


def divided(step, value, x, names, ds):
    """By a reduction."""
    by = names[step.more["other"]]
    there = x.wide / by.wide
    loose = finite(x.error / abs(by.wide)) + abs(there) * finite(by.error / abs(by.wide))
    # By what may as well be nothing.
    loose = xr.where(2 * by.error >= abs(by.wide), np.inf, 2 * loose)
    return Near(value, there, finite(loose + rounded(value, there)))


def of_weights(step, names, ds):
    """The rounding of the weights' type: xarray adds them up in it."""
    if "by" not in step.more:
        return 0.0
    return eps_of(evaluated(step.more["by"], ds, **{name: one.value for name, one in names.items()}))


def linear(step, value, x, names, ds):
    """Sums and means, also within groups and with weights."""
    # Variables of the data set are in 80 bits too. Labels of groups are not: pandas cannot group by such numbers.
    given = ds if "groupby(" in step.text else wide(ds)
    there = evaluated(step.text, given, x=x.wide)
    # A product of two f4 is an f4 before it is added.
    inner = eps_of(x.value) if "dot(" in step.text else 0.0
    sizes = step.text.replace("ds[", "abs(ds[").replace("]", "])", 1) if "dot(" in step.text else step.text
    added = evaluated(sizes, given, x=abs(x.wide))
    if "dot(" in step.text:
        inner = max(inner, eps_of(ds[step.more["other"]]))
    error = evaluated(sizes, given, x=finite(x.error)) if largest(x.error) else 0.0
    # A mean is a sum that is divided: it is infinite where the sum is beyond the type.
    error = error + xr.where(size_of(x.value) * added > greatest_of(value), np.inf, 0.0)
    if "dot(" in step.text and np.isinf(x.wide).any():
        # A factor that is not summed over is multiplied before or after: infinities of both signs, or one.
        error = error + np.inf
    own = (size_of(x.value) + MORE) * (adding(x.value) + of_weights(step, names, ds)) * added + inner * added
    return Near(value, there, finite(own + error + rounded(value, there)))


def spread(step, value, x, names, ds):
    """Variances and their roots: two passes, of which the second sees the rounding of the first, squared."""
    there = evaluated(step.text, ds, x=x.wide)
    mean = evaluated(step.size, ds, x=abs(x.wide))
    # xarray keeps the mean with weights in the type of the elements before it takes distances from it, and adds up the squares of
    # these in the type of the answer: f4 for integers of 16 bits with such weights.
    of_answer = largest(eps_of(value)) if "by" in step.more else 0
    adds = adding(x.value) + of_weights(step, names, ds) + of_answer
    rounding = adds + (eps_of(x.value) if "by" in step.more else 0)
    first = 2 * (size_of(x.value) + MORE) * rounding * mean
    root = ".std(" in step.text
    variance = there**2 if root else there
    second = 2 * (size_of(x.value) + MORE) * adds * variance + MORE * first**2
    if OF_BLOCKS.get():
        # dask takes the distance of each block's mean from that of all: the rounding of a mean counts as often as that distance.
        second = second + 2 * np.sqrt(variance) * first
    error = np.sqrt(variance + second) - np.sqrt(np.maximum(variance - second, 0)) if root else second
    if largest(x.error):
        # A deviation is a norm: it moves by no more than that of what is added.
        moved = np.sqrt(evaluated(step.size, ds, x=finite(x.error) ** 2)) * 3
        error = error + (moved if root else 2 * np.sqrt(variance) * moved + moved**2)
    # xarray squares in the type of the elements.
    error = error + xr.where(size_of(x.value) * mean > np.sqrt(greatest_of(value)), np.inf, 0.0)
    near = Near(value, there, finite(error + rounded(value, there)))
    return near if not isinstance(value, xr.Dataset) else not_reduced(near, x)


def not_reduced(near, x):
    """With variables of a data set that have none of the dimensions as they were: so xarray leaves them."""
    for name, one in near.value.data_vars.items():
        if one.sizes == x.value[name].sizes:
            near.wide[name], near.error[name] = x.wide[name], x.error[name]
    return near


def ends(step, value, x, names, ds):
    there = evaluated(step.text, ds, x=x.wide)
    return Near(value, there, finite(without(value)) + largest(x.error) + rounded(value, there))


def quantile(step, value, x, names, ds):
    there = evaluated(step.text, ds, x=x.wide)
    own = evaluated(step.size, ds, x=abs(x.wide))
    error = finite(without(value) + 8 * EPS * own + largest(x.error)) + 4 * rounded(value, there)
    # NumPy gives NaN between two infinities of one sign, and beside one; Gristmill the infinity, and the number: docs/correctness.md.
    return Near(value, there, error.where(~(np.isinf(own) & there.isnull()), np.inf))


def product(step, value, x, names, ds):
    there = evaluated(step.text, ds, x=x.wide)
    return Near(value, there, product_error(value, there, x.value, x.wide))


def product_error(value, there, x, wides):
    """The roundings of a product; anything where what lies between may be too large or too small for the type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: product_error(one, there[one.name], x[one.name], wides[one.name]))
    logs = float(np.abs(np.log10(np.abs(wides.where(wides != 0)))).sum())
    if logs > (37 if x.dtype == np.float32 else 300):
        return xr.zeros_like(there) + np.inf
    return finite((x.size + MORE) * rounded(value, there))


def running(step, value, x, names, ds):
    """Running sums depend on each other: a bound of all that there is."""
    return Near(value, wide(value), running_error(step, value, x.value) + like(x.error, value))


def running_error(step, value, x):
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: running_error(step, one, x[one.name]))
    all_of = float(abs(wide(x)).sum())
    if not np.isfinite(all_of):
        # Whatever has an infinity beside it.
        return finite(without(value)) + np.inf
    factor = all_of * (np.sqrt(EPS * x.size) if ".std(" in step.text else EPS * x.size)
    return finite(without(value)) + 4 * max(EPS, eps_of(value)) / EPS * factor


def twin(step, value, x, names, ds):
    """Covariances and correlations."""
    from .twins import bound

    return bound(step, value, x, names, ds)


KINDS = {
    "exact": exact,
    "beside": beside,
    "ulps": ulps,
    "shift": moved,
    "scale": scaled,
    "square": squared,
    "apart": apart,
    "divided": divided,
    "linear": linear,
    "spread": spread,
    "ends": ends,
    "quantile": quantile,
    "product": product,
    "running": running,
    "twin": twin,
}
