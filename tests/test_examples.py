"""The examples: each program runs anywhere, prints what it says that it prints, and leaves nothing behind."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import tomllib

import nbformat
import pytest
from cluster import Up, until
from conftest import ROOT, binary
from pages import same
from python_package import gm, processes_of  # noqa: F401

FOLDER = ROOT / "examples"
TIMEOUT = 120  # seconds, for a program; a bound on a hang, not a measure of speed
MAX_LINES = 50  # of a program in Python

PYTHON = sorted((FOLDER / "python").glob("*.py"))
SHELL = sorted((FOLDER / "shell").glob("*.sh"))
NOTEBOOKS = sorted((FOLDER / "notebook").glob("*.ipynb"))
# test_locate.py runs them.
LOCATE = sorted((FOLDER / "locate").glob("*.py"))
RUST = [ROOT / "crates/client/examples/sum_on_nodes.rs"]

#: The output of each notebook. Notebooks are stored without outputs.
PRINTED = {
    "first_hour": """
        ... bytes on 4 nodes
        730 days in chunks of (73, 18, 36)
        12 maps and 730 maxima: 2 requests, 0 reads
        288.2 K; 1 request, 0 reads
        reduced where it is stored: ((x * 1.8) + 32) with x = air[0:730, 0:18, 0:36]
        read before it is reduced: storage nodes do not compute sin
        at most 7.2 degC
        ['monthly.nc']
        xarray has the same numbers
    """,
}

#: Runs the cells of a notebook one after the other, as a kernel of Jupyter does.
CELLS = """
import json, sys
names = {"__name__": "__main__"}
with open(sys.argv[1]) as file:
    cells = json.load(file)["cells"]
for number, cell in enumerate(cells):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
"""


def named(path):
    return path.stem


def says(path) -> str:
    """Returns the output that the comment at the top of a program shows."""
    lines = path.read_text().splitlines()
    plain = "\n".join(re.sub(r"^(#|//!) ?", "", line) for line in lines)
    found = re.search(r"It prints:\n\n((?: {4}.+\n)+)", plain)
    assert found, f"{path.name} does not say what it prints"
    return textwrap.dedent(found[1])


def run(tmp_path, *command, env=None) -> str:
    """Runs a program in empty folders and returns its output. It must leave the folders empty, and no process."""
    here, temporary, tools = tmp_path / "here", tmp_path / "temporary", tmp_path / "tools"
    for folder in (here, temporary, tools):
        folder.mkdir()
    (tools / "gristmill").symlink_to(binary())
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GRISTMILL_")}
    path = f"{tools}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            command,
            cwd=here,
            env={**inherited, "PATH": path, "TMPDIR": str(temporary), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, done.stdout
        until(lambda: not processes_of(temporary), "what an example started ends")
        assert not list(here.iterdir()) and not list(temporary.iterdir())
    finally:
        for left in sorted(processes_of(temporary)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
    return done.stdout


def check(wanted, got):
    assert same(wanted, got), f"wanted:\n{wanted}\ngot:\n{got}"


@pytest.mark.parametrize("program", PYTHON, ids=named)
def test_programs_in_python_print_what_they_say(program, tmp_path):
    assert len(program.read_text().splitlines()) < MAX_LINES
    check(says(program), run(tmp_path, sys.executable, program))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=named)
def test_the_cells_of_notebooks_run_in_order(notebook, tmp_path):
    check(textwrap.dedent(PRINTED[notebook.stem]), run(tmp_path, sys.executable, "-c", CELLS, notebook))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=named)
def test_notebooks_are_stored_without_outputs(notebook):
    book = json.loads(notebook.read_text())
    assert book["nbformat"] == 4
    nbformat.validate(book)
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.parametrize("session", SHELL, ids=named)
def test_sessions_of_a_shell_print_what_they_say(session, tmp_path):
    check(says(session), run(tmp_path, session))


@pytest.mark.parametrize("source", RUST, ids=named)
def test_programs_in_rust_print_what_they_say(source, clusters, tmp_path):
    program = binary().parent / "examples" / source.stem
    if not program.exists():
        package = f"gristmill-{source.parent.parent.name}"
        pytest.skip(f"{program.name} is not built: run 'cargo build -p {package} --example {program.name}'")
    nodes = clusters(Up, nodes=2)
    check(says(source), run(tmp_path, program, nodes.url()))
    # The same, with the cluster that the environment names; the file is gone.
    (tmp_path / "again").mkdir()
    check(says(source), run(tmp_path / "again", program, env={"GRISTMILL_CLUSTER": nodes.url()}))
    assert nodes.grist.ok("ls", nodes.url()) == b""


def test_no_example_is_without_a_test():
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    # 'cargo test' tests the crates, and test_pages.py the page that explains them.
    crates = [ROOT / member for member in members if member.startswith("examples/")]
    tested = {FOLDER / "README.md", *PYTHON, *NOTEBOOKS, *SHELL, *LOCATE}
    for path in FOLDER.rglob("*"):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(FOLDER).parts)
        if path.is_file() and not hidden and not any(path.is_relative_to(crate) for crate in crates):
            assert path in tested, f"no test runs {path.relative_to(ROOT)}"
    assert len(PYTHON) >= 4 and len(NOTEBOOKS) >= 1 and len(SHELL) >= 1 and all(path.exists() for path in RUST)
    assert {notebook.stem for notebook in NOTEBOOKS} == set(PRINTED)


def test_every_example_is_in_the_list():
    page = (FOLDER / "README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert not [link for link in links if not (FOLDER / link).exists()]
    for path in [*PYTHON, *NOTEBOOKS, *SHELL, *LOCATE, *RUST]:
        assert os.path.relpath(path, FOLDER) in links, f"examples/README.md does not name {path.name}"
