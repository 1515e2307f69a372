"""Runs one program on one data set in each way, and compares the answer with the expected one."""

import hashlib
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from . import bounds, datasets, programs, ways
from .comparison import differences
from .written import write

#: How many programs share one data set. To write it and store it costs as much as several programs.
PROGRAMS_OF_ONE = 20


@dataclass(frozen=True)
class Difference:
    """A difference of one way from xarray."""

    way: str
    said: tuple[str, ...]
    #: The exception of Gristmill, if it raised one.
    error: BaseException | None = None


@dataclass
class Case:
    """A program, its data set, and the differences that were found."""

    seed: Any
    number: int
    made: datasets.Made
    program: programs.Program
    #: The data set as xarray opens it.
    theirs: Any = None
    #: The answer of xarray, or the exception that it raises.
    expected: Any = None
    refusal: Exception | None = None
    #: Why the numbers have no bound. It is empty if they have one, or if nobody asked for one.
    unbounded: str = ""
    found: list[Difference] = field(default_factory=list)

    @property
    def text(self):
        return self.program.text


class Unreadable(Exception):
    """A data set that xarray itself cannot open."""


class Place:
    """A data set in a file, and also on nodes if there are some. `close` removes the file."""

    def __init__(self, made, folder, name, cluster=None, chunks=None):
        self.made = made
        self.path = Path(folder) / f"{name}{made.suffix}"
        self.chunks = chunks or {}
        write(made, self.path)
        self.url = None
        if cluster:
            # The name is unique, because Gristmill remembers what was under a name before.
            digest = hashlib.sha1(str(self.path).encode()).hexdigest()[:12]
            self.url = f"{cluster}{digest}-{name}{made.suffix}"
            ways.put(self.path, self.url)
        try:
            self.theirs = ways.of_xarray(self.path)
        except Exception as error:
            self.close()
            raise Unreadable(str(error)) from error

    def close(self):
        if self.path.is_dir():
            shutil.rmtree(self.path)
        else:
            self.path.unlink()

    def answer(self, way, program):
        """The answer of Gristmill in one way, in memory."""
        with ways.opened(way, self.path, self.url, self.chunks) as ds, ways.options(way):
            return programs.run(program.steps, ds).as_numpy()


def answered(place, way, program):
    """``(answer, error)`` of one way. A panic should never reach a program, so it counts as an error here."""
    try:
        return place.answer(way, program), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return None, error


def compare(case, place, which):
    """Finds the differences in the given ways and adds them to the case."""
    near = {}

    def bound(of_blocks):
        if of_blocks not in near:
            near[of_blocks] = None
            try:
                found = bounds.of(case.program, place.theirs, of_blocks)
                if variables(found.wide) != variables(case.expected):
                    raise bounds.Unbounded("a bound of other variables")
                near[of_blocks] = found.wide, found.error
            except bounds.Unbounded as error:
                case.unbounded = str(error)
        return near[of_blocks]

    for way in which:
        got, error = answered(place, way, case.program)
        bound_of_way = partial(bound, way in ways.OF_DASK)
        said = judged(case, got, error, bound_of_way)
        if said and not as_otherwise(case, place, way, got, error, bound_of_way):
            case.found.append(Difference(way, tuple(said), error))
    return case


def variables(answer):
    """The names of the variables of a data set, or None."""
    return set(answer.data_vars) if isinstance(answer, xr.Dataset) else None


def judged(case, got, error, bound):
    if error is not None and type(error).__name__ == "PanicException":
        return [f"panic: {error}"]
    if case.refusal is not None:
        if error is not None:
            return []
        return [f"answers: xarray raises {type(case.refusal).__name__}: {case.refusal}"]
    if error is not None:
        return [f"raises {type(error).__name__}: {error}"]
    return differences(got, case.expected, bound)


#: The steps of a program that use flox: all, none, or those that need it.
FLOX = (lambda step: True, lambda step: False, programs.needs_flox)


def as_otherwise(case, place, way, got, error, bound):
    """Whether xarray gives the same answer in another way of its own. One way uses the same blocks of dask, where dask decides
    types and refusals. The others work without flox, which has other types and other empty groups than Gristmill. One of them
    uses flox only for steps that xarray computes with it alone: Gristmill does so once the elements are in memory."""
    chunks = [None]
    if way in ways.OF_DASK:
        with ways.opened(way, place.path, place.url, place.chunks) as ds:
            # A variable that was added may have other chunks. Then the chunks that were asked for count.
            try:
                chunks.append(dict(ds.chunks))
            except ValueError:
                chunks.append(place.chunks if way == "pieces" else {})
    for given in chunks:
        grouped = "groupby" in case.text or "resample" in case.text
        for flox in FLOX if grouped else FLOX[:1]:
            if given is None and flox is FLOX[0]:
                continue
            expected = refusal = None
            try:
                with ways.of_xarray(place.path, given) as ds:
                    expected = programs.run(case.program.steps, ds, flox=flox).as_numpy()
            except Exception as raised:
                refusal = raised
            other = Case(case.seed, case.number, case.made, case.program, case.theirs, expected, refusal)
            if not judged(other, got, error, bound):
                return True
    return False


def data_of(seed, number, folder, cluster=None):
    """The data set of the program with this number."""
    which = number // PROGRAMS_OF_ONE
    made = datasets.make(seed, which)
    return Place(made, folder, f"data{which}", cluster, ways.pieces(seed, which, made.sizes))


def run(seed, number, place, which):
    """Runs the program with this number of a seed, in the given ways."""
    program, expected, refusal = programs.make(seed, number, place.theirs)
    case = Case(seed, number, place.made, program, place.theirs, expected, refusal)
    return compare(case, place, ways.of_program(number, which))
