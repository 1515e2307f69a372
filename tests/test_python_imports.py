"""Imports between the packages inside ``gristmill`` go one way."""

import ast

import pytest
from conftest import ROOT

FOLDER = ROOT / "python" / "gristmill"

#: The extension module, its stub, and the modules that start the package. They belong to no part.
NO_PARTS = ("_gristmill", "__init__", "__main__", "__pycache__")


def parts():
    """The parts of the package: the packages in the folder, and the private modules beside them."""
    names = {path.name.split(".")[0] for path in FOLDER.iterdir()}
    return {name for name in names if name.startswith("_") and name not in NO_PARTS}


def part_of(path):
    return path.relative_to(FOLDER).parts[0].removesuffix(".py")


def imported(path):
    """The parts that a file imports, including imports inside functions and imports for types."""
    here = path.relative_to(FOLDER).parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = here[: len(here) - node.level]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            for name in names:
                yield (*package, *name.split("."))[0]


def imports():
    """For each part, the other parts that it imports."""
    found = {part: set() for part in parts()}
    for path in FOLDER.rglob("*.py"):
        if part_of(path) in found:
            found[part_of(path)] |= set(imported(path)) & parts() - {part_of(path)}
    return found


def documented_order():
    """The parts in the order of the documentation of ``gristmill``: each one stands below the parts that it imports."""
    text = ast.get_docstring(ast.parse((FOLDER / "__init__.py").read_text()))
    listed = [line.split("``")[1] for line in text.splitlines() if line.startswith("- ``_")]
    return [name.removesuffix(".py") for name in listed]


def test_the_documentation_lists_every_part():
    assert sorted(documented_order()) == sorted(parts())


@pytest.mark.parametrize("part", documented_order())
def test_a_part_imports_only_parts_above_it_in_the_list(part):
    order = documented_order()
    assert imports()[part] <= set(order[: order.index(part)])
