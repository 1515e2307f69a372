"""Docstrings of the Python package: every public name has one, with an example that runs.

Public names are those in ``gristmill.__all__``, the members of their classes, and objects that are reached without such a name:
the file that ``gristmill.open`` returns, and the accessors of xarray. The example of a method goes on where the example of its
class ends. The example of a class may also cover its properties and attributes.
"""

import doctest
import importlib
import inspect
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import xarray as xr
from python_package import gm

from gristmill._files.open_files import File

#: Names of the package without a docstring: ``__version__`` is text.
NO_DOCSTRING = {"__version__"}

#: The minimum numbers of public names, of docstrings with examples, and of statements in them. A smaller number means that some
#: were not found.
MIN_NAMES, MIN_DOCSTRINGS, MIN_STATEMENTS = 168, 110, 246

ROOTS = {name: getattr(gm, name) for name in gm.__all__ if name not in NO_DOCSTRING}
ROOTS |= {"open()": File, "DataArray.gristmill": xr.DataArray.gristmill, "Dataset.gristmill": xr.Dataset.gristmill}
CLASSES = {root for root in ROOTS.values() if inspect.isclass(root)}


@dataclass(frozen=True)
class Public:
    """A public name, its docstring, and the class that it belongs to."""

    name: str
    text: str
    owner: type | None = None
    #: Whether the name can be called. Then it needs its own example.
    called: bool = True

    def examples(self):
        return doctest.DocTestParser().get_examples(self.text)

    def has_example(self):
        if self.examples() or self.called:
            return bool(self.examples())
        attribute = re.compile(rf"\.{self.name.rpartition('.')[2]}\b")
        return any(attribute.search(one.source) for one in examples_of(self.owner))


def said(value):
    """The docstring of a class or a function itself, not the one that it inherits."""
    return inspect.cleandoc(value.__doc__ or "")


def examples_of(owner):
    return doctest.DocTestParser().get_examples(said(owner))


def comment(base, name):
    """The comment above an attribute of a class: ``#: Size in bytes.``"""
    found = re.search(rf"((?:^ *#:.*\n)+) *{name}\s*:", inspect.getsource(base), re.MULTILINE)
    return found[1] if found else ""


def members(label, owner):
    """The public members of a class and of its private bases. Bases of other packages have their own documentation."""
    seen = set()
    for base in owner.__mro__:
        if not base.__module__.startswith("gristmill") or (base is not owner and base in CLASSES):
            continue
        attributes = inspect.get_annotations(base)
        for name in [*vars(base), *attributes]:
            value = inspect.unwrap(getattr(vars(base).get(name), "__func__", vars(base).get(name)))
            if name.startswith("_") or name in seen:
                continue
            if inspect.isfunction(value):
                yield Public(f"{label}.{name}", said(value), owner)
            elif isinstance(value, property):
                yield Public(f"{label}.{name}", said(value), owner, called=False)
            elif name in attributes:
                yield Public(f"{label}.{name}", comment(base, name), owner, called=False)
            else:
                continue
            seen.add(name)


def public(label):
    """A public name of the package. For a class, also its members."""
    root = ROOTS[label]
    yield Public(label, said(root))
    if inspect.isclass(root):
        yield from members(label, root)


EVERY = [one for label in ROOTS for one in public(label)]


def test_every_public_name_has_a_docstring():
    assert not [one.name for one in EVERY if not one.text.strip()]
    assert len(EVERY) >= MIN_NAMES


def test_every_public_name_has_an_example():
    assert not [one.name for one in EVERY if not one.has_example()]
    assert sum(bool(one.examples()) for one in EVERY) >= MIN_DOCSTRINGS
    assert sum(len(one.examples()) for one in EVERY) >= MIN_STATEMENTS
    assert not [one.name for one in EVERY for example in one.examples() if doctest.SKIP in example.options]


def test_every_parameter_of_a_function_is_described():
    missing = [
        (name, parameter)
        for name, root in ROOTS.items()
        if inspect.isfunction(root)
        for parameter in inspect.signature(root).parameters
        if not re.search(rf"\b{parameter}\b", root.__doc__)
    ]
    assert not missing


@pytest.fixture(scope="module")
def cluster():
    with gm.up(nodes=2, lanes=1) as nodes:
        yield nodes


def run(name, examples, text, names):
    printed = []
    done = doctest.DocTestRunner().run(doctest.DocTest(examples, names, name, None, None, text), out=printed.append)
    assert done.failed == 0, "".join(printed)
    assert done.attempted == len(examples)


@pytest.mark.parametrize("label", ROOTS)
def test_the_examples_give_what_they_say(label, cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one in public(label):
        if one.examples():
            before = examples_of(one.owner) if one.owner else []
            run(one.name, [*before, *one.examples()], one.text, {"cluster": cluster})


def modules_with_examples():
    folder = Path(gm.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        if ">>> " in path.read_text():
            yield ".".join(["gristmill", *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")


def test_the_examples_of_private_names_give_what_they_say(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {one.text for one in EVERY}
    found = set()
    for name in modules_with_examples():
        for test in doctest.DocTestFinder().find(importlib.import_module(name), extraglobs={"cluster": cluster}):
            if test.examples and inspect.cleandoc(test.docstring) not in known:
                found.add(test.name)
                run(test.name, test.examples, test.docstring, test.globs)
    assert found >= {"gristmill", "gristmill._errors.to_python_words", "gristmill._arguments.sizes.size_text"}
