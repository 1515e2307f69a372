"""The parts of a release: the source distribution, the metadata of the installed package, and its types.

The distribution is not built again, because that takes minutes. Instead, each of its files must be the same as here, where the
package under test was built, and cargo must accept the manifests and the lock file.
"""

import json
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest
from conftest import ROOT
from python_package import gm

TIMEOUT = 240  # seconds; a bound on a hang
WHOLE = ("Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "pyproject.toml")
NOT_FOR_OTHERS = {"tests", "bench", "docs", "fuzz", "scripts", "target", ".venv", ".git", ".tools", "shared"}
#: Crates that no part of the package needs: a library for the storage daemons of Ceph.
NOT_NEEDED = {"object-class"}


def run(*command, cwd=ROOT):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not here")
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "maturin", "sdist", "--out", folder)
    [archive] = folder.glob("*.tar.gz")
    assert archive.name == f"gristmill-{gm.__version__}.tar.gz" and archive.stat().st_size < 16 << 20
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def sources():
    """Every source file that a build reads."""
    found = [ROOT / name for name in WHOLE]
    needed = (crate for crate in (ROOT / "crates").iterdir() if crate.name not in NOT_NEEDED)
    for crate in [*needed, ROOT / "python"]:
        found += [path for path in crate.rglob("*") if path.is_file()]
    made = {".so", ".pyc"}
    return [path.relative_to(ROOT) for path in found if path.suffix not in made]


def test_the_sources_are_whole_and_nothing_else_is_there(unpacked):
    for path in sources():
        assert (unpacked / path).is_file(), path
        if path.name not in ("Cargo.toml", "pyproject.toml"):  # these name only the parts that are there
            assert (unpacked / path).read_bytes() == (ROOT / path).read_bytes(), path
    assert not NOT_FOR_OTHERS & {path.name for path in unpacked.iterdir()}
    assert not [path for path in unpacked.rglob("*") if path.suffix in (".so", ".pyc", ".rlib", ".nc", ".h5")]


def test_cargo_takes_the_sources_as_they_are(unpacked):
    text = run("cargo", "metadata", "--locked", "--offline", "--format-version", "1", cwd=unpacked)
    found = json.loads(text)
    members = {Path(package["manifest_path"]).parent for package in found["packages"] if package["source"] is None}
    assert unpacked / "python" in members and unpacked / "crates" / "cli" in members
    assert all(member.is_relative_to(unpacked) for member in members)
    for package in found["packages"]:
        for target in package["targets"] if package["source"] is None else ():
            assert Path(target["src_path"]).is_file()


def test_the_installed_package_says_what_it_has():
    about = metadata.distribution("gristmill")
    assert about.version == gm.__version__
    points = {(point.group, point.name): point.value for point in about.entry_points}
    for group, name in [
        ("xarray.backends", "gristmill"),
        ("fsspec.specs", "grist"),
        ("fsspec.specs", "grist+unix"),
        ("console_scripts", "gristmill"),
    ]:
        assert (group, name) in points
    for point in about.entry_points:
        assert point.load() is not None
    files = {str(path) for path in about.files}
    assert {"gristmill/py.typed", "gristmill/_gristmill.pyi", "gristmill/_fsspec/filesystem.py"} <= files
    assert any(path.endswith("LICENSE") for path in files)
    assert about.metadata["License-Expression"] == "Apache-2.0" and about.metadata["Requires-Python"] == ">=3.10"


PROGRAM = """
from pathlib import Path
import gristmill as gm
import numpy as np
from numpy.typing import NDArray

info: gm.FileInfo = gm.put(np.arange(10.0), "grist://127.0.0.1:7440/x", stripe="4KiB", record=8)
length: int = info.length
answer: gm.Answer = gm.run("sum", info.url, type=np.float64)
names: list[str] = [entry.name for entry in gm.ls("grist://127.0.0.1:7440/")]
arrays: gm.Arrays = gm.open_arrays(Path("a.nc"))
array: gm.Array = arrays["tos"]
shape: tuple[int, ...] = array.shape
part: gm.Array = array[2:10]
with gm.open("a.nc") as file:
    line: bytes = file.readline()
    inside: gm.Array = file["tos"]
    keys: list[str] = list(file.keys())
dataset = gm.open_dataset("a.nc", chunks={}, group="model", decode_times=False)
warm: float = float(dataset["tos"].mean())
several = gm.open_mfdataset(["a.nc", "b.nc"], combine="nested", concat_dim="time")
with gm.set_options(fallback="error"), gm.trace() as t:
    requests: int = t.requests
try:
    gm.stat("nowhere")
except gm.NotFound as error:
    print(error.kind)
with gm.up(nodes=2) as nodes:
    url: str = nodes.path("x")
"""

WRONG = """
import gristmill as gm
gm.put(7, "x", strip=4)
a: int = gm.open_arrays("a.nc")
"""


def test_types_help_those_who_use_it(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    run(sys.executable, "-m", "mypy", "--strict", "program.py", cwd=tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "wrong.py"], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 1 and "strip" in done.stdout and "Arrays" in done.stdout


def test_the_package_itself_is_typed():
    run(sys.executable, "-m", "mypy", "python/gristmill")
