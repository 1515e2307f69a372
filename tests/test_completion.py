"""Completion with Tab in a shell: commands, kernels, types and paths on storage nodes; and the manual pages."""

import os
import pty
import re
import shutil
import subprocess

import pytest
from cluster import Up, until
from conftest import binary

MOST = 1 << 20  # maximum output of a shell in bytes; more means that something is wrong


class Bash:
    """An interactive bash in a terminal, with the completions of Gristmill."""

    def __init__(self, folder, env):
        tools = folder / "bin"
        tools.mkdir()
        (tools / "gristmill").symlink_to(binary())
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("GRISTMILL_")}
        self.terminal, theirs = pty.openpty()
        # The terminal is a simple one with a very long line, so that the drawing of readline does not matter.
        self.child = subprocess.Popen(
            [shutil.which("bash"), "--noprofile", "--norc", "-i"],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, start_new_session=True,
            env={**inherited, "PATH": f"{tools}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "", "COLUMNS": "1000", **env},
        )  # fmt: skip
        os.close(theirs)
        os.set_blocking(self.terminal, False)
        self.words("bind 'set bell-style none'; bind 'set show-all-if-ambiguous off'; source <(gristmill completions bash)")

    def read(self, end):
        said = b""

        def more():
            nonlocal said
            try:
                said += os.read(self.terminal, 65536)
            except BlockingIOError:
                pass
            assert len(said) < MOST
            return re.search(end, said, re.DOTALL)

        return until(more, f"{end} from bash, which said {said}")

    def words(self, line):
        """Runs a line and waits for its end."""
        os.write(self.terminal, f"{line}; echo do''ne\n".encode())
        self.read(rb"done\r?\n")

    def typed(self, line):
        """The words of a line after Tab was pressed at its end."""
        # Ctrl-A goes to the beginning of the line. The line becomes the arguments of a command that prints them.
        os.write(self.terminal, line.encode() + b"\t\x01printf '<%s>' \x05 en''d\n")
        found = self.read(rb"(<gristmill>(?:<[^<>]*>)*)<end>")[1].decode()
        return re.findall("<([^<>]*)>", found)[1:]

    def end(self):
        os.close(self.terminal)
        self.child.kill()
        self.child.wait()


@pytest.fixture(scope="module")
def up(clusters):
    up = clusters(Up, nodes=2)
    up.put("/fields/temperature.f64", b"12345678")
    up.put("/notes", b"12345678")
    return up


@pytest.fixture
def bash(tmp_path, request):
    env = {"GRISTMILL_CLUSTER": request.getfixturevalue("up").entry} if "short" in request.node.name else {}
    (tmp_path / "here").mkdir()
    bash = Bash(tmp_path / "here", env)
    yield bash
    bash.end()


@pytest.mark.parametrize(
    "line, words",
    [
        ("gristmill comp", ["completions"]),
        ("gristmill run hist", ["run", "histogram"]),
        ("gristmill run mom", ["run", "moments"]),
        ("gristmill kernels quan", ["kernels", "quantile"]),
        ("gristmill run sum file --typ", ["run", "sum", "file", "--type"]),
        ("gristmill run sum file --type u1", ["run", "sum", "file", "--type", "u16"]),
        ("gristmill run sum file --type=f3", ["run", "sum", "file", "--type=f32"]),
        ("gristmill run sum file --place st", ["run", "sum", "file", "--place", "storage"]),
        ("gristmill run sum gri", ["run", "sum", "grist://"]),
    ],
)
def test_names(bash, line, words):
    assert bash.typed(line) == words


def test_files_of_this_machine(bash, tmp_path):
    (tmp_path / "here" / "measured.f64").write_bytes(b"")
    assert bash.typed("gristmill run sum meas") == ["run", "sum", "measured.f64"]
    assert bash.typed("gristmill put meas") == ["put", "measured.f64"]


def test_paths_on_nodes(bash, up):
    folder, file = up.url("/fields/"), up.url("/fields/temperature.f64")
    assert bash.typed(f"gristmill run sum {up.url('/f')}") == ["run", "sum", folder]
    assert bash.typed(f"gristmill run sum {folder}t") == ["run", "sum", file]
    assert bash.typed(f"gristmill get {folder}") == ["get", file]
    assert bash.typed(f"gristmill put some {up.url('/n')}") == ["put", "some", up.url("/notes")]
    assert bash.typed(f"gristmill rm {up.url('/x')}") == ["rm", up.url("/x")]


def test_paths_on_nodes_by_their_short_names(bash):
    assert bash.typed("gristmill stat grist:///fie") == ["stat", "grist:///fields/"]
    assert bash.typed("gristmill stat gri") == ["stat", "grist://"]
    assert bash.typed("gristmill stat grist:") == ["stat", "grist:///"]


def test_a_cluster_that_is_not_there_offers_nothing_and_says_nothing(grist):
    done = grist("ls", "grist://127.0.0.1:1/a", env={"GRISTMILL_COMPLETE": "bash", "_CLAP_COMPLETE_INDEX": "1"})
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "elvish", "powershell"])
def test_scripts_call_the_program(grist, tmp_path, shell):
    script = grist.ok("completions", shell)
    assert b"GRISTMILL_COMPLETE" in script and b"gristmill" in script
    path = tmp_path / "script"
    path.write_bytes(script)
    if shell in ("bash", "zsh", "fish") and shutil.which(shell):
        done = subprocess.run([shell, "-n", path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_every_command_has_a_manual_page(grist, tmp_path):
    folder = tmp_path / "man" / "man1"
    assert grist.ok("man", folder) == f"the manual pages are in {folder}\n".encode()
    usage = grist.ok("--help").decode()
    commands = re.findall(r"^  ([a-z]+) ", usage.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    assert len(commands) > 10
    wanted = {"gristmill.1"} | {f"gristmill-{command}.1" for command in commands if command != "help"}
    assert {path.name for path in folder.iterdir()} == wanted
    for path in folder.iterdir():
        text = path.read_text()
        assert text.startswith(".ie") or ".TH gristmill" in text, path
    run = (folder / "gristmill-run.1").read_text()
    for word in ("NAME", "SYNOPSIS", "Examples:", "big\\-endian"):
        assert word in run, word
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-z", *folder.iterdir()], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_manual_pages_where_no_folder_can_be(grist, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert "file/man1" in grist.refuses(1, "man", tmp_path / "file" / "man1")
