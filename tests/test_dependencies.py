"""The dependencies of crates. Ours follow the floors of ARCHITECTURE.md, and others follow `deny.toml`. `make audit` also looks at
known defects."""

import json
import re
import shutil
import subprocess
import tomllib

import pytest
from conftest import ROOT
from rust_modules import circles, used

RULES = tomllib.loads((ROOT / "deny.toml").read_text())


#: A row of the table of floors.
FLOOR = re.compile(r"^\| (\d|beside) \| `([\w/-]+)` \|", re.MULTILINE)


@pytest.fixture(scope="module")
def metadata():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--all-features"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"cargo has not all packages here: {done.stderr.decode()[-200:]}")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def packages(metadata):
    return [package for package in metadata["packages"] if package["source"] is not None]


def test_our_crates_use_those_on_lower_floors_only(metadata):
    floors = {name.rpartition("/")[2]: floor for floor, name in FLOOR.findall((ROOT / "ARCHITECTURE.md").read_text())}
    short = lambda name: "cli" if name == "gristmill" else name.removeprefix("gristmill-")
    ours = {short(one["name"]): one for one in metadata["packages"] if one["source"] is None}
    assert set(floors) == set(ours) - {"probe"}, "the table names every crate, but for the benchmark's probe"
    used = [
        (name, short(other["name"]))
        for name, one in ours.items()
        for other in one["dependencies"]
        if other["kind"] is None and short(other["name"]) in floors and name in floors
    ]
    assert len(used) > 40
    wrong = [(name, other) for name, other in used if "beside" not in (floors[name], floors[other]) and floors[name] <= floors[other]]
    assert not wrong, wrong
    assert not [one for one in used if floors[one[1]] == "beside" and floors[one[0]] != "beside"]


def features(*choice):
    """The features of each package that a choice of crates builds."""
    command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}", *choice]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.splitlines()
    split = [line.removesuffix(" (*)").partition("|") for line in lines if "|" in line]
    return {(package, on) for package, _, on in split if not package.startswith("gristmill-python ")}


def test_the_package_of_the_tests_has_the_features_of_the_workspace(metadata):
    package = features("--package", "gristmill-python", "--features", "as-tested", "--edges", "normal,build")
    assert len(package) > 100
    workspace = features("--workspace", "--all-features", "--edges", "all")
    twice = sorted(package - workspace)
    assert not twice, f"make test compiles {twice} twice; add the features that are missing to 'as-tested' in python/Cargo.toml"


@pytest.mark.parametrize("crate", ["array", "cli", "collective"])
def test_modules_do_not_use_each_other_in_circles(crate):
    edges = used(ROOT / "crates" / crate)
    assert sum(map(len, edges.values())) > 5
    assert not circles(edges)


def test_a_circle_is_found():
    assert circles({("a",): {("b",)}, ("b",): {("c",)}, ("c",): {("a",), ("d",)}, ("d",): set()}) == [["a", "b", "c"]]
    assert circles({("a",): {("b",)}, ("b",): set()}) == []


def allowed(licence):
    """Whether `deny.toml` allows a licence, or one of several that a package offers."""
    words = {word: word in RULES["licenses"]["allow"] for word in re.findall(r"[A-Za-z0-9.-]+(?: WITH [A-Za-z-]+)?", licence)}
    text = licence.replace("/", " OR ")
    for word, may in sorted(words.items(), key=lambda one: -len(one[0])):
        if word not in ("AND", "OR"):
            text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w.-]| WITH)", str(may), text)
    return eval(text.replace("AND", "and").replace("OR", "or"), {"__builtins__": {}})


@pytest.mark.parametrize(
    ("licence", "may"),
    [
        ("MIT", True), ("MIT/Apache-2.0", True), ("GPL-3.0-only", False), ("MIT AND GPL-2.0", False), ("MIT OR LGPL-2.1-or-later", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True), ("Apache-2.0 WITH LLVM-exception", True), ("BSL-1.0", False),
    ],
)  # fmt: skip
def test_a_choice_of_licences_is_understood(licence, may):
    assert allowed(licence) is may


def test_every_dependency_may_be_linked_and_comes_from_the_registry(packages):
    wrong = [f"{one['name']}: {one['license']}" for one in packages if not one["license"] or not allowed(one["license"])]
    assert not wrong, wrong
    foreign = [f"{one['name']}: {one['source']}" for one in packages if "crates.io-index" not in one["source"]]
    assert not foreign, foreign
