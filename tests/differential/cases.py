"""One program on one data set, in each way: what came, and what should have come."""

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

#: Programs over one data set: writing it and storing it costs as much as some of them.
PROGRAMS_OF_ONE = 20


@dataclass(frozen=True)
class Difference:
    """What one way did otherwise than xarray."""

    way: str
    said: tuple[str, ...]
    #: The exception that Gristmill raised, if it did.
    error: BaseException | None = None


@dataclass
class Case:
    """A program, its data set, and what differed."""

    seed: Any
    number: int
    made: datasets.Made
    program: programs.Program
    #: The data set as xarray has it.
    theirs: Any = None
    #: What xarray answers, or the exception that it raises.
    expected: Any = None
    refusal: Exception | None = None
    #: Why there is no bound for the numbers, if there is none and one was asked for.
    unbounded: str = ""
    found: list[Difference] = field(default_factory=list)

    @property
    def text(self):
        return self.program.text


class Unreadable(Exception):
    """A data set that xarray itself cannot open."""


class Place:
    """A data set in a file, and the same on nodes if there are some. The file goes at the end."""

    def __init__(self, made, folder, name, cluster=None, chunks=None):
        self.made = made
        self.path = Path(folder) / f"{name}{made.suffix}"
        self.chunks = chunks or {}
        write(made, self.path)
        self.url = None
        if cluster:
            # A name of its own: what was there before is remembered.
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
        """What Gristmill answers in one way, in memory."""
        with ways.opened(way, self.path, self.url, self.chunks) as ds, ways.options(way):
            return programs.run(program.steps, ds).as_numpy()


def answered(place, way, program):
    """``(answer, error)`` of one way. A panic is an error that no program should see, and is one here."""
    try:
        return place.answer(way, program), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return None, error


def compare(case, place, which):
    """Fills in what differs, in some ways."""
    near = {}

    def bound(of_blocks):
        if of_blocks not in near:
            near[of_blocks] = None
            try:
                found = bounds.of(case.program, place.theirs, of_blocks)
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


def as_otherwise(case, place, way, got, error, bound):
    """Whether xarray does the same in another way of its own: over the same blocks of dask, whose types and refusals are dask's,
    or without flox, whose types and empty groups those of Gristmill are not."""
    chunks = [None]
    if way in ways.OF_DASK:
        with ways.opened(way, place.path, place.url, place.chunks) as ds:
            # A variable of its own may have others; then these are those that were asked for.
            try:
                chunks.append(dict(ds.chunks))
            except ValueError:
                chunks.append(place.chunks if way == "pieces" else {})
    for given in chunks:
        for flox in (True, False) if "groupby" in case.text or "resample" in case.text else (True,):
            if given is None and flox:
                continue
            expected = refusal = None
            try:
                with ways.of_xarray(place.path, given) as ds, xr.set_options(use_flox=flox):
                    expected = programs.run(case.program.steps, ds).as_numpy()
            except Exception as raised:
                refusal = raised
            other = Case(case.seed, case.number, case.made, case.program, case.theirs, expected, refusal)
            if not judged(other, got, error, bound):
                return True
    return False


def data_of(seed, number, folder, cluster=None):
    """The data set of a program."""
    which = number // PROGRAMS_OF_ONE
    made = datasets.make(seed, which)
    return Place(made, folder, f"data{which}", cluster, ways.pieces(seed, which, made.sizes))


def run(seed, number, place, which):
    """The program of a seed with a number, in some ways."""
    program, expected, refusal = programs.make(seed, number, place.theirs)
    case = Case(seed, number, place.made, program, place.theirs, expected, refusal)
    return compare(case, place, ways.of_program(number, which))
