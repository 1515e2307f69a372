"""Makes a difference small: fewer lines, fewer variables, fewer elements."""

import tempfile
from dataclasses import replace

import numpy as np

from . import cases, known, ways
from .datasets import Made
from .programs import Program, run
from .variables import Stored
from .written import HEADER, source

#: The maximum number of candidates. Each one takes a tenth of a second.
MAX_TRIES = 120


def shrunk(case, difference, folder, cluster=None, chunks=None):
    """The smallest ``(made, program, way, chunks)`` that was found with the same kind of difference."""
    tries = 0
    best = (case.made, case.program)
    reason = known.explained(case, difference)

    def differs(made, program):
        nonlocal tries
        tries += 1
        if tries > MAX_TRIES:
            return False
        try:
            with tempfile.TemporaryDirectory(dir=folder) as within:
                there = cluster if difference.way in ways.ON_NODES else None
                place = cases.Place(made, within, "small", there, chunks)
                expected = refusal = None
                try:
                    expected = run(program.steps, place.theirs)
                except Exception as error:
                    refusal = error
                if (refusal is None) != (case.refusal is None):
                    return False
                small = cases.Case(case.seed, case.number, made, program, place.theirs, expected, refusal)
                cases.compare(small, place, [difference.way])
                # Another kind of difference does not count.
                return any(
                    kind_of(one) == kind_of(difference) and known.explained(small, one) is reason for one in small.found
                )
        except Exception:
            return False

    changed = True
    while changed and tries < MAX_TRIES:
        changed = False
        for candidate in candidates(*best):
            if differs(*candidate):
                best, changed = candidate, True
                break
    return *best, difference.way, chunks


def kind_of(difference):
    first = difference.said[0].split(":")
    return first[0], type(difference.error).__name__


def candidates(made, program):
    """The same case with something removed."""
    steps = program.steps
    for at in range(len(steps) - 1, 0, -1):
        yield made, Program((*steps[:at], *steps[at + 1 :]))
    used = {one.name for one in made.variables if f"'{one.name}'" in program.text}
    if any(one.name not in used and one.name not in made.sizes for one in made.variables):
        yield made.only(used), program
    for at, one in enumerate(made.variables):
        if one.name in made.sizes and one.name not in used:
            yield replace(made, variables=made.variables[:at] + made.variables[at + 1 :]), program
    for dim, size in made.sizes.items():
        for fewer in sorted({size // 2, size - 1} - {size, 0, -1}):
            yield shorter(made, dim, slice(0, fewer)), program
            yield shorter(made, dim, slice(size - fewer, size)), program
    for at, one in enumerate(made.variables):
        for simpler in simple(one):
            yield replace(made, variables=(*made.variables[:at], simpler, *made.variables[at + 1 :])), program
    if made.unlimited:
        yield replace(made, unlimited=()), program


def shorter(made, dim, part):
    """The same data set with fewer elements along a dimension."""

    def cut(one):
        if dim not in one.dims:
            return one
        values = one.values[tuple(part if name == dim else slice(None) for name in one.dims)]
        chunks = one.chunks and tuple(min(n, max(1, m)) for n, m in zip(one.chunks, values.shape))
        return replace(one, values=values, chunks=chunks)

    sizes = {**made.sizes, dim: len(range(*part.indices(made.sizes[dim])))}
    return Made(made.form, sizes, tuple(map(cut, made.variables)), made.unlimited)


def simple(one: Stored):
    """The variable with fewer attributes or simpler storage."""
    for name in one.attrs:
        if name != "calendar":
            yield replace(one, attrs={key: value for key, value in one.attrs.items() if key != name})
    if one.codec != "{}":
        yield replace(one, codec="{}")
    if one.values.dtype.kind == "f" and one.values.size:
        rounded = np.rint(one.values)
        if not np.array_equal(rounded, one.values, equal_nan=True):
            yield replace(one, values=rounded.astype(one.values.dtype))


def script(made, program, way, chunks):
    """A Python script that writes the data set and prints the answers of xarray and Gristmill."""
    path = f"differs{made.suffix}"
    lines = [HEADER.rstrip(), "import gristmill as gm", "", source(made, repr(path)).rstrip(), "", "def program(ds):"]
    lines += [f"    {step.line}" for step in program.steps]
    lines += ["    return x.as_numpy()", ""]
    engine = "engine='zarr', consolidated=False" if made.suffix == ".zarr" else "engine='netcdf4'"
    lines.append(f"print('expected', program(xr.open_dataset({path!r}, {engine})))")
    name = repr(path)
    if way in ways.ON_NODES:
        lines += ["nodes = gm.up(nodes=2)", f"url = nodes.path({path!r})"]
        if made.suffix == ".zarr":
            lines += ["import subprocess", f"subprocess.run(['gristmill', 'put', {path!r}, url], check=True)"]
        else:
            lines.append(f"gm.put({path!r}, url, stripe={ways.STRIPE!r})")
        name = "url"
    if way == "storage":
        lines.append("option = gm.set_options(place='storage')")
    how = {"blocks": ", chunks={}", "pieces": f", chunks={chunks}", "far": ", chunks={}"}.get(way, "")
    lines.append(f"print('got', program(gm.open_dataset({name}{how})))")
    return "\n".join(lines)
