"""Random programs. Each line runs on the data set of xarray as soon as it is made."""

import warnings
from dataclasses import dataclass
from random import Random

import numpy as np

from . import arithmetic, groupings, reductions, selections, several
from .steps import INEXACT, State, Step

#: The maximum number of steps. The parts of a step do not count.
MAX_STEPS = 5
#: How often a program ends with a line that xarray refuses. Gristmill should refuse it too.
REFUSED = 0.3
#: How many lines xarray may refuse before the program ends.
MAX_REFUSED = 6
#: The maximum number of elements of a result. Without it, repeated expansion would never end.
MAX_ELEMENTS = 20_000

FAMILIES = [
    (selections.STEPS, 3.2),
    (arithmetic.STEPS, 2.6),
    (reductions.STEPS, 3.0),
    (groupings.STEPS, 1.5),
    (several.STEPS, 0.8),
]


@dataclass(frozen=True)
class Program:
    """Lines of Python over the data set ``ds``. The answer is ``x``."""

    steps: tuple[Step, ...]

    @property
    def text(self):
        return "\n".join(step.line for step in self.steps)


def run(steps, ds, names=None, flox=lambda step: True):
    """The result of a program on a data set. It raises the exceptions of its lines. ``flox`` tells for a step whether xarray uses
    flox."""
    import xarray as xr

    names = {"ds": ds, "np": np, "xr": xr} if names is None else names
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for step in steps:
            with xr.set_options(use_flox=flox(step)):
                names[step.name] = eval(compiled(step.text), names)
    return names["x"]


def needs_flox(step):
    """Whether xarray computes this step only with flox: without it there is no `first` of several variables."""
    return step.text.endswith((".first()", ".last()"))


def compiled(text):
    return compile(text, "<program>", "eval")


def make(seed, number, ds):
    """The program with this number of a seed for a data set of xarray, and its result there.

    Returns ``(program, answer, error)``, where either the answer or the error is None.
    """
    choose = Random(f"program {seed} {number}")
    state = State(choose, ds)
    steps = [beginning(state)]
    answer = run(steps, ds, state.names)
    refused = 0
    wanted = choose.choice([1, 2, 2, 3, 3, 4, MAX_STEPS])
    for _ in range(60):
        if len(steps) > wanted or refused > MAX_REFUSED:
            break
        new = something(state)
        if new is None:
            continue
        new = new if isinstance(new, list) else [new]
        before = dict(state.names)
        try:
            answer = run(new, ds, state.names)
        except Exception as error:
            refused += 1
            if choose.random() < REFUSED:
                return Program((*steps, *new)), None, error
            state.names = before
            continue
        if too_much(answer):
            state.names = before
            continue
        steps += new
        state.exact = state.exact and not any(step.kind in INEXACT or step.kind == "running" for step in new)
    return Program(tuple(steps)), state.x, None


def beginning(state):
    choose, names = state.choose, sorted(state.ds.data_vars)
    if choose.random() < 0.2 and len(names) > 1:
        picked = choose.sample(names, choose.randint(1, len(names)))
        return Step(f"ds[{picked!r}]", "start")
    return Step(f"ds[{choose.choice(names)!r}]", "start")


def something(state):
    """A random step, or None if the drawn step does not fit here."""
    choose = state.choose
    family = choose.choices([one for one, _ in FAMILIES], [weight for _, weight in FAMILIES])[0]
    maker = choose.choices([one for one, _ in family], [weight for _, weight in family])[0]
    return maker(state)


def too_much(answer):
    import xarray as xr

    if isinstance(answer, xr.Dataset):
        return any(one.size > MAX_ELEMENTS for one in answer.variables.values())
    return not isinstance(answer, xr.DataArray) or answer.size > MAX_ELEMENTS
