"""Checks that pages of the documentation are true: commands in a shell, examples in Python, and whole programs."""

import doctest
import re
import shlex
import shutil
import subprocess
import warnings

import numpy as np
import pytest
import xarray as xr
from conftest import ROOT, binary
from pages import HOW, Shell, same, typed
from python_package import gm
from test_guide import NOTES, examples, ocean  # noqa: F401

DOCS = ROOT / "docs"
CONSOLE = sorted(page for page in DOCS.glob("*.md") if "```console\n" in page.read_text())
PYTHON = sorted(page for page in DOCS.glob("*.md") if "```pycon\n" in page.read_text())
FILE = re.compile(r"^`([\w./-]+)`:\n\n```(?:rust|toml|ini)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def named(page):
    return page.stem


@pytest.mark.parametrize("page", CONSOLE, ids=named)
def test_commands_print_what_the_page_shows(page, tmp_path):
    shell = Shell(tmp_path)
    try:
        for command in typed(page.read_text()):
            got = shell.run(command)
            assert same(command.wanted, got), (
                f"{page.name}, line {command.line}\n{command.command}\nwanted:\n{command.wanted}\ngot:\n{got}"
            )
    finally:
        shell.end()


@pytest.mark.parametrize("page", PYTHON, ids=named)
def test_examples_in_python_give_what_the_page_shows(page, ocean, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ocean.nc").symlink_to(ocean)
    (tmp_path / "notes.txt").write_text(NOTES)
    test = examples(page)
    test.globs = {"gm": gm, "np": np, "xr": xr}
    assert test.examples
    said = []
    with warnings.catch_warnings(), gm.set_options(place="storage"):
        warnings.simplefilter("ignore", RuntimeWarning)
        done = doctest.DocTestRunner(optionflags=HOW).run(test, out=said.append)
    assert done.failed == 0, "".join(said)


def programs():
    """The Python programs of the README, each with the output that follows it."""
    return re.findall(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```)?", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_readme_runs_kernels_from_python(capsys):
    program, wanted = programs()[0]
    exec(compile(program, "README.md", "exec"), {})
    got = capsys.readouterr().out.splitlines()
    # The number of moved bytes depends on where the nodes and this process compute, because they share a machine.
    assert got[:-1] == wanted.splitlines()[:-1]
    assert len(got) == len(wanted.splitlines()) and all(int(number) >= 0 for number in got[-1].split())


def test_the_readme_reduces_variables_from_python(ocean, capsys):  # noqa: F811
    program, _ = programs()[1]
    with gm.up(nodes=2) as nodes, gm.set_options(place="storage"):
        gm.put(ocean, nodes.path("tos.nc"))
        program = program.replace("grist://HOST:PORT/tos.nc", nodes.path("tos.nc"))
        exec(compile(program, "README.md", "exec"), {"gristmill": gm})
    requests, bytes_in, *explained = capsys.readouterr().out.split()
    assert int(requests) == 2 and int(bytes_in) > 0
    assert " ".join(explained).startswith("reduced where it is stored")


def test_programs_on_pages_are_the_files_that_are_built():
    found = {name: text for page in DOCS.glob("*.md") for name, text in FILE.findall(page.read_text())}
    assert {"examples/sign-changes/Cargo.toml", "examples/sign-changes/src/lib.rs"} <= set(found)
    for name, text in found.items():
        assert (ROOT / name).read_text() == text, name


def test_units_are_what_systemd_reads(tmp_path):
    page = (DOCS / "administration.md").read_text()
    units = re.findall(r"gristmill\.service > /dev/null <<'EOF'\n(.*?)^EOF$", page, re.DOTALL | re.MULTILINE)
    assert len(units) == 2
    for unit in units:
        path = tmp_path / "gristmill.service"
        path.write_text(unit.replace("/usr/local/bin/gristmill", str(binary())))
        for word in ("[Unit]", "[Service]", "ExecStart=", "[Install]", "WantedBy=multi-user.target"):
            assert f"\n{word}" in f"\n{unit}"
        if shutil.which("systemd-analyze"):
            done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
            assert "gristmill.service" not in done.stderr, done.stderr


def fenced(text):
    """Blocks of code without a language."""
    language = None
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            if language == "":
                yield block
            language, block = (line[3:].strip(), "") if language is None else (None, "")
        elif language is not None:
            block += line


def commands():
    """Every `gristmill` command in the README and on pages that are not run, as words."""
    for page in [ROOT / "README.md", *DOCS.glob("*.md")]:
        for block in fenced(page.read_text().replace("\\\n", " ")):
            for line in block.splitlines():
                found = re.match(r"(?:\$ )?(gristmill .*)$", line)
                if found:
                    words = shlex.split(re.split(r"\s&(?:&|$)|\s\||\s2?>|\s#", found[1])[0])
                    yield page.name, [word for word in words[1:] if word != "..."]


def test_every_other_command_is_one():
    seen = list(commands())
    assert len(seen) > 15
    for page, words in seen:
        # The parser reads words from the left, so it reports a mistake before `--help`.
        done = subprocess.run([binary(), *words, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, (page, words, done.stderr)
