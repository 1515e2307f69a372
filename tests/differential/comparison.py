"""Finds the differences between two answers."""

from functools import partial

import numpy as np
import xarray as xr

#: The maximum number of characters of a value in a message.
MAX_SHOWN = 300
#: A label may be a mean of several labels, which are added up in any order.
ROUNDINGS_OF_LABELS = 32


def differences(got, expected, bound):
    """Sentences that describe the differences. There are none if the answers agree.

    ``bound()`` gives the number in 80 bits and the distance within which a number is right, like ``bounds.of``. It is called only
    if bits differ. It gives None if there is no bound.
    """
    if type(got).__name__ != type(expected).__name__:
        return [f"kind: {type(got).__name__}, expected {type(expected).__name__}"]
    if isinstance(expected, xr.Dataset):
        return of_datasets(got, expected, bound)
    return of_arrays(got, expected, bound)


def of_datasets(got, expected, bound):
    said = []
    # The order is not compared: flox gives another order of its groups each time.
    if set(got.data_vars) != set(expected.data_vars):
        return [f"variables: {list(got.data_vars)}, expected {list(expected.data_vars)}"]
    if dict(got.sizes) != dict(expected.sizes):
        said.append(f"sizes: {dict(got.sizes)}, expected {dict(expected.sizes)}")
    said += attributes("attrs", got.attrs, expected.attrs)
    for name in expected.data_vars:

        def within(name=name):
            near = bound()
            return near and (near[0][name], near[1][name])

        said += [f"{name}: {text}" for text in of_arrays(got[name], expected[name], within)]
    return said


def of_arrays(got, expected, bound):
    said = []
    if got.dims != expected.dims:
        return [f"dims: {got.dims}, expected {expected.dims}"]
    if got.shape != expected.shape:
        return [f"shape: {got.shape}, expected {expected.shape}"]
    if got.name != expected.name:
        said.append(f"name: {got.name!r}, expected {expected.name!r}")
    said += attributes("attrs", got.attrs, expected.attrs)
    if set(got.coords) != set(expected.coords):
        said.append(f"coords: {sorted(map(str, got.coords))}, expected {sorted(map(str, expected.coords))}")
    for name in expected.coords:
        if name in got.coords:
            one, two = got.coords[name].variable, expected.coords[name].variable
            said += [f"coord {name}: {text}" for text in of_variables(one, two, partial(of_labels, two))]
            said += attributes(f"attrs of coord {name}", one.attrs, two.attrs)
    return said + of_variables(got.variable, expected.variable, bound)


def of_labels(expected):
    """The bound for coordinates. `coarsen` computes means of them."""
    there = np.asarray(expected.values).astype(np.longdouble)
    largest = np.abs(np.where(np.isfinite(there), there, 0)).max(initial=0)
    return there, np.full(there.shape, ROUNDINGS_OF_LABELS * float(np.finfo(expected.dtype).eps) * largest)


def of_variables(got, expected, bound):
    # With flox xarray has bins as a type of pandas, and without it as objects.
    if "interval" in str(expected.dtype) and got.dtype == object:
        expected = xr.Variable(expected.dims, np.array(list(expected.values), object), expected.attrs)
    if got.dims != expected.dims or got.shape != expected.shape:
        return [f"shape: {got.dims} {got.shape}, expected {expected.dims} {expected.shape}"]
    if got.dtype != expected.dtype:
        return [f"dtype: {got.dtype}, expected {expected.dtype}"]
    return of_values(got.values, expected.values, partial(in_order, bound, expected.dims))


def in_order(bound, dims):
    """A bound with its dimensions in this order. Over blocks of dask xarray sometimes has another order."""
    near = bound()
    ordered = lambda one: one.transpose(*dims) if set(getattr(one, "dims", ())) == set(dims) else one
    return near and tuple(map(ordered, near))


def attributes(what, got, expected):
    same = got.keys() == expected.keys() and all(
        np.array_equal(got[name], expected[name]) or is_nan(got[name]) and is_nan(expected[name]) for name in expected
    )
    return [] if same else [f"{what}: {got}, expected {expected}"]


def is_nan(value):
    return isinstance(value, float | np.floating) and np.isnan(value)


def of_values(got, expected, bound):
    """The elements that differ by more than the bound."""
    if expected.dtype.kind == "O":
        alike = np.array([same_object(one, two) for one, two in zip(got.flat, expected.flat)], bool)
        differ = ~alike.reshape(expected.shape)
    else:
        differ = got != expected
        if expected.dtype.kind in "fcmM":
            differ &= ~((got != got) & (expected != expected))
    if not differ.any():
        return []
    if expected.dtype.kind == "f":
        near = bound()
        # Over blocks of dask the result of xarray sometimes has another shape.
        if near is not None and all(np.shape(one) == got.shape for one in near):
            differ &= ~close(got, *near)
            if not differ.any():
                return []
    at = np.unravel_index(int(np.argmax(differ)), differ.shape)
    at = tuple(map(int, at))
    how_many = f"{int(differ.sum())} of {differ.size} elements, first at {at}"
    return [f"values: {got[at]!r}, expected {expected[at]!r}; {how_many}"[:MAX_SHOWN]]


def same_object(one, two):
    """Whether two objects are equal. Two missing values are equal, and pairs of labels are compared one by one."""
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(same_object, one, two))
    return bool(one == two or (one != one and two != two))


def close(got, there, error):
    """Which numbers are within the bound of the right ones."""
    there, error = np.asarray(there), np.asarray(error)
    limit = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        bound = error + np.abs(there) * float(limit.eps) + float(limit.smallest_subnormal)
        near = np.abs(got.astype(there.dtype) - there) <= bound
        # A number beyond the type may be an infinity.
        near |= np.isinf(got) & (np.abs(there) + bound >= float(limit.max)) & (np.sign(got) == np.sign(there))
        near |= (error > float(limit.max)) | np.isnan(got) & np.isnan(there)
    return near
