"""How far apart two right numbers may be.

For each program this module computes the answer in 80 bits, and an error bound from the elements of each cell. A sum of ``n``
floats that is added up in any order is off by at most ``n eps sum|x|`` (Higham, *Accuracy and Stability of Numerical Algorithms*,
4.2). So each name of a program has three things: its value, the value in 80 bits, and a bound for the error of the steps so far. A
step that picks elements picks them from the bounds too. A step that adds elements up adds up their bounds, and adds the error of
the addition itself. A number is right if its distance from the value in 80 bits is within the bound. It need not be near the
number of xarray.
"""

import re
import warnings
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from . import programs

WIDE = np.longdouble
EPS = float(np.finfo("f8").eps)
#: A bound that allows every number. Its square is still a number.
ANYTHING = WIDE(10) ** 2000
#: NumPy adds pairwise, in blocks of 8 by 128, and rounds some numbers in between. This makes a few more roundings than elements.
MORE = 4


#: Whether sums run over blocks of dask. dask computes sums and means in the type of the elements, block by block, and arrays of
#: Gristmill do the same if dask asks for it.
OF_BLOCKS = ContextVar("of_blocks", default=False)


class Unbounded(Exception):
    """The error bound of a step is not known."""


@dataclass
class Near:
    """A value, the same value in 80 bits, and an error bound."""

    value: Any
    wide: Any
    error: Any


def of(program, ds, of_blocks=False):
    """The answer of a program with its error bound. With `of_blocks` it is the bound for blocks of dask. Raises
    :class:`Unbounded`."""
    OF_BLOCKS.set(of_blocks)
    names = {}
    # The faster libraries do not support numbers of 80 bits.
    slow = xr.set_options(use_flox=False, use_bottleneck=False, use_numbagg=False)
    with warnings.catch_warnings(), np.errstate(all="ignore"), slow:
        warnings.simplefilter("ignore")
        try:
            for step in program.steps:
                # Only bottleneck fills forwards and backwards.
                with xr.set_options(use_bottleneck="fill(" in step.text, use_flox=programs.needs_flox(step)):
                    names[step.name] = fitting(after(step, names, ds))
        except Unbounded:
            raise
        except Exception as error:
            raise Unbounded(f"{step.line}: {error}") from error
    return names["x"]


def fitting(near):
    """Puts the dimensions of the value in 80 bits and of the bound into the order of the value."""
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
    """Whether any of the values are floats, which are rounded."""
    if isinstance(value, xr.Dataset):
        return any(one.dtype.kind == "f" for one in value.data_vars.values())
    return value.dtype.kind == "f"


def wide(value):
    """The same in 80 bits. Values that are not numbers stay unchanged."""
    if isinstance(value, xr.Dataset):
        return value.map(wide, keep_attrs=True)
    return value.astype(WIDE) if value.dtype.kind in "iufb" else value


def eps_of(value):
    """The machine epsilon of each variable's own type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: xr.DataArray(WIDE(eps_of(one))))
    return float(np.finfo(value.dtype).eps) if value.dtype.kind == "f" else 0.0


def greatest_of(value):
    """The largest number of each variable's own type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: xr.DataArray(WIDE(greatest_of(one))))
    return WIDE(np.finfo(value.dtype).max) if value.dtype.kind == "f" else WIDE(np.inf)


def least_of(value):
    """The smallest number above zero of each variable's own type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: xr.DataArray(WIDE(least_of(one))))
    return WIDE(np.finfo(value.dtype).smallest_subnormal) if value.dtype.kind == "f" else WIDE(0)


def adding(value):
    """The relative rounding error of a sum: that of f8, except over blocks of dask, where it may be that of a smaller type."""
    return max(EPS, largest(eps_of(value))) if OF_BLOCKS.get() else EPS


def rounded(value, there):
    """The error of rounding to the type of a value, also for subnormal numbers."""
    return finite(eps_of(value) * abs(there.where(np.isfinite(there)))) + least_of(value)


def without(value):
    """An error bound of zero for each element."""
    return xr.zeros_like(wide(value))


def finite(error):
    """A bound without NaN and infinities. Missing elements are compared exactly, and an infinite bound times a weight of 0 would
    be NaN."""
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
    """A bound for elements that were picked by their values: the bound of each element, or the largest one."""
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
    """The value of a step, with its error bound."""
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
    """NumPy's result counts as the right one, with the usual rounding. A fused operation rounds once less."""
    return Near(value, wide(value), like(x.error, value) + MORE * eps_of(value) * abs(wide(value)))


def beside(step, value, x, names, ds):
    """One variable of a new data set comes from `x`. The others are unchanged variables."""
    error = finite(without(value)).assign({step.more["as"]: x.error})
    return Near(value, wide(value).assign({step.more["as"]: x.wide}), error)


def ulps(step, value, x, names, ds):
    return Near(value, wide(value), finite(MORE * 2 * eps_of(value) * abs(wide(value))))


def moved(step, value, x, names, ds):
    """The step adds a number."""
    there = evaluated(step.text, ds, x=x.wide)
    return Near(value, there, like(x.error, value) + rounded(value, there))


def scaled(step, value, x, names, ds):
    there = evaluated(step.text, ds, x=x.wide)
    error = abs(evaluated(step.text, ds, x=x.error)) if largest(x.error) else finite(without(value))
    return Near(value, there, error + rounded(value, there))


def squared(step, value, x, names, ds):
    there = x.wide**2
    # A missing value with a bound that allows every number keeps that bound.
    return Near(value, there, finite(2 * abs(x.wide).fillna(0) * x.error) + x.error**2 + rounded(value, there))


def apart(step, value, x, names, ds):
    """The step subtracts a reduction from the elements."""
    other = names[step.more.get("other", "m")]
    name = step.more.get("other", "m")
    there = evaluated(step.text, ds, x=x.wide, **{name: other.wide})
    plus = step.text.replace(" - ", " + ")
    error = finite(evaluated(plus, ds, x=finite(x.error), **{name: finite(other.error)}))
    return Near(value, there, error + rounded(value, there))


def divided(step, value, x, names, ds):
    """The step divides by a reduction."""
    by = names[step.more["other"]]
    there = x.wide / by.wide
    loose = finite(x.error / abs(by.wide)) + finite(abs(there) * finite(by.error / abs(by.wide)))
    # The divisor may as well be zero.
    loose = xr.where(2 * by.error >= abs(by.wide), np.inf, 2 * loose)
    return Near(value, there, finite(loose + rounded(value, there)))


def of_weights(step, names, ds):
    """The machine epsilon of the weights' type, in which xarray adds them up."""
    if "by" not in step.more:
        return 0.0
    return eps_of(evaluated(step.more["by"], ds, **{name: one.value for name, one in names.items()}))


def linear(step, value, x, names, ds):
    """The step is a sum or a mean, also of groups or with weights."""
    # The variables of the data set are in 80 bits too. The labels of groups are not, because pandas cannot group by such numbers.
    given = ds if "groupby(" in step.text else wide(ds)
    there = evaluated(step.text, given, x=x.wide)
    # The product of two f4 is rounded to f4 before it is added.
    inner = eps_of(x.value) if "dot(" in step.text else 0.0
    sizes = step.text.replace("ds[", "abs(ds[").replace("]", "])", 1) if "dot(" in step.text else step.text
    added = evaluated(sizes, given, x=abs(x.wide))
    if "dot(" in step.text:
        inner = max(inner, eps_of(ds[step.more["other"]]))
    error = evaluated(sizes, given, x=finite(x.error)) if largest(x.error) else 0.0
    # A mean is a divided sum. It is infinite if the sum overflows its type.
    error = error + xr.where(size_of(x.value) * added > greatest_of(value), np.inf, 0.0)
    if "dot(" in step.text and np.isinf(x.wide).any():
        # A factor that is not summed over may be multiplied before the sum or after it. The results differ if there are
        # infinities.
        error = error + np.inf
    own = (size_of(x.value) + MORE) * (adding(x.value) + of_weights(step, names, ds)) * added + inner * added
    # The own error of a missing value is no number. It keeps the bound of the elements.
    near = Near(value, there, finite(finite(own) + error + rounded(value, there)))
    return unaffected(step, near, x)


def unaffected(step, near, x):
    """Variables of a data set without the dimension of a resampling keep their values in each group, as in xarray. In 80 bits they
    are missing in empty groups."""
    found = re.search(r"\bresample\((\w+)=", step.text)
    if found and isinstance(near.value, xr.Dataset):
        for name, one in near.value.data_vars.items():
            if found[1] not in x.value[name].dims:
                near.wide[name] = x.wide[name].broadcast_like(one)
                near.error[name] = x.error[name].broadcast_like(one)
    return near


def spread(step, value, x, names, ds):
    """The step is a variance or a standard deviation. It takes two passes; the second one has the squared rounding error of the
    first."""
    there = evaluated(step.text, ds, x=x.wide)
    mean = evaluated(step.size, ds, x=abs(x.wide))
    # With weights, xarray keeps the mean in the type of the elements before it computes the distances. It adds up their squares in
    # the type of the answer, which is f4 for integers of 16 bits with weights of f4.
    of_answer = largest(eps_of(value)) if "by" in step.more else 0
    adds = adding(x.value) + of_weights(step, names, ds) + of_answer
    rounding = adds + (eps_of(x.value) if "by" in step.more else 0)
    first = 2 * (size_of(x.value) + MORE) * rounding * mean
    root = ".std(" in step.text
    variance = there**2 if root else there
    second = 2 * (size_of(x.value) + MORE) * adds * variance + MORE * first**2
    if OF_BLOCKS.get():
        # dask computes the distance of each block's mean from the mean of all blocks. The rounding error of a mean is multiplied
        # by that distance.
        second = second + 2 * np.sqrt(variance) * first
    error = np.sqrt(variance + second) - np.sqrt(np.maximum(variance - second, 0)) if root else second
    if largest(x.error):
        # A deviation is a norm. It changes by at most the norm of the change.
        moved = np.sqrt(evaluated(step.size, ds, x=finite(x.error) ** 2)) * 3
        error = finite(error) + (moved if root else finite(2 * np.sqrt(variance) * moved) + moved**2)
    # xarray computes the squares in the type of the elements.
    error = error + xr.where(size_of(x.value) * mean > np.sqrt(greatest_of(value)), np.inf, 0.0)
    near = Near(value, there, finite(error + rounded(value, there)))
    return near if not isinstance(value, xr.Dataset) else not_reduced(near, x)


def not_reduced(near, x):
    """Variables of a data set that have none of the dimensions stay unchanged, as in xarray."""
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
    # Between two infinities of one sign, and beside one, NumPy gives NaN. Gristmill gives the infinity or the element:
    # docs/correctness.md.
    return Near(value, there, error.where(~(np.isinf(own) & there.isnull()), np.inf))


def product(step, value, x, names, ds):
    there = evaluated(step.text, ds, x=x.wide)
    return Near(value, there, product_error(value, there, x.value, x.wide))


def product_error(value, there, x, wides):
    """The rounding error of a product. It is unlimited if an intermediate result may be too large or too small for the type."""
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: product_error(one, there[one.name], x[one.name], wides[one.name]))
    logs = float(np.abs(np.log10(np.abs(wides.where(wides != 0)))).sum())
    if logs > (37 if x.dtype == np.float32 else 300):
        return xr.zeros_like(there) + np.inf
    return finite((x.size + MORE) * rounded(value, there))


def running(step, value, x, names, ds):
    """Running sums depend on each other, so they share one bound."""
    return Near(value, wide(value), running_error(step, value, x.value) + like(x.error, value))


def running_error(step, value, x):
    if isinstance(value, xr.Dataset):
        return value.map(lambda one: running_error(step, one, x[one.name]))
    all_of = float(abs(wide(x)).sum())
    if not np.isfinite(all_of):
        # An infinity makes everything beside it unbounded.
        return finite(without(value)) + np.inf
    factor = all_of * (np.sqrt(EPS * x.size) if ".std(" in step.text else EPS * x.size)
    return finite(without(value)) + 4 * max(EPS, eps_of(value)) / EPS * factor


def twin(step, value, x, names, ds):
    """The step is a covariance or a correlation."""
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
