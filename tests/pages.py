"""Runs the commands of pages: types blocks of `console` into one bash and compares the output with the page.

A line that begins with `$ ` is a command. A line that begins with `name$ ` is a command on another machine, which here is another
folder and another port. A command goes on after a backslash, and to the end of its text from `<<'EOF'`. The lines up to the next
command are its output. `...` matches anything. The numbers of a report, times and process IDs are not compared.
"""

import doctest
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cluster import until
from conftest import ROOT, binary

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"^([a-z]+[0-9]+)?\$ (.*)$")
HOW = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TIMEOUT = 60  # seconds for a command; a bound on a hang, not a measure of speed

#: Paths where an administrator puts files. They lie in the folder of a machine here.
PLACES = re.compile(r"(?:\b([a-z]+[0-9]+):)?(?<![\w./])/(?=(?:etc|home|backup|usr/local|var/lib)(?:/|\b))")
#: Credentials of S3 that users of the pages have: those of the examples of AWS.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
#: Text that differs from run to run: reports, process IDs, ports that the system chose, times.
MASKS = [
    (re.compile(r"^read .* s \(.*$", re.MULTILINE), "read ..."),
    (re.compile(r"\bkill \d+"), "kill PROCESS"),
    (re.compile(r"(127\.0\.0\.1|localhost):(?!74\d\d\b|PORT)\d+"), r"\1:PORT"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?Z?"), "DATE"),
]
#: Commands of an administrator that would change this machine. These replacements do what a test needs.
FUNCTIONS = r"""
sudo() { while [[ $1 == -* ]]; do shift 2; done; "$@"; }
useradd() { :; }
userdel() { :; }
chown() { :; }
scp() { command cp "$@"; }
install() {
    local kept=()
    while (($#)); do
        case $1 in -o | -g) shift 2 ;; *) kept+=("$1"); shift ;; esac
    done
    if [[ ${kept[*]} == *release/gristmill* ]]; then
        command ln -sf "$(readlink -f target/release/gristmill)" "${kept[-1]}"
    else
        command install "${kept[@]}"
    fi
}
systemctl() {
    case $1 in
        daemon-reload) ;;
        enable | start) "$TOOLS/service" start "${!#}" "$MACHINE" > /dev/null ;;
        disable | stop) "$TOOLS/service" stop "${!#}" "$MACHINE" ;;
        restart) "$TOOLS/service" stop "${!#}" "$MACHINE"; "$TOOLS/service" start "${!#}" "$MACHINE" > /dev/null ;;
        *) echo "no such command here: systemctl $1" >&2; return 1 ;;
    esac
}
"""
#: Starts and stops the command of a systemd unit: it runs ExecStart and waits until that listens.
SERVICE = r"""#!/usr/bin/env bash
set -euo pipefail
unit=$3/etc/systemd/system/${2%.service}.service
state=$3/${2%.service}
command=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$unit" | sed -n 's/^ExecStart=//p')
if [[ $1 == start ]]; then
    cd "$3"
    : > "$state.said"
    $command > "$state.said" 2>&1 < /dev/null &
    echo $! > "$state.pid"
    until grep -q "listening on" "$state.said"; do
        kill -0 $! || { cat "$state.said" >&2; exit 1; }
    done
else
    kill "$(cat "$state.pid")"
    while kill -0 "$(cat "$state.pid")" 2> /dev/null; do :; done
fi
"""


@dataclass
class Typed:
    """A command, the machine on which it is typed, and the output that the page shows."""

    line: int
    host: str
    command: str
    wanted: str


def typed(text: str) -> list[Typed]:
    found = []
    for block in BLOCK.finditer(text):
        number = text.count("\n", 0, block.start(1))
        lines = block[1].splitlines()
        while lines:
            number += 1
            line = lines.pop(0)
            prompt = PROMPT.match(line)
            if not prompt:
                assert found, f"line {number} is printed by no command: {line}"
                found[-1].wanted += line + "\n"
                continue
            command, at = prompt[2], number
            ends = "EOF" if "<<'EOF'" in command else None
            while lines and (ends or command.endswith("\\")):
                number += 1
                command += "\n" + lines.pop(0)
                if ends and command.endswith("\nEOF"):
                    break
            found.append(Typed(at, prompt[1] or "", command, ""))
    return found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Shell:
    """One bash, with a folder for each machine of the page."""

    def __init__(self, folder: Path):
        self.folder, self.ports, self.number, self.here = folder, {}, 0, None
        tools = folder / "tools"
        tools.mkdir()
        (tools / "gristmill").symlink_to(binary())
        (tools / "sign-changes").symlink_to(binary().parent / "sign-changes")
        (tools / "service").write_text(SERVICE)
        (tools / "service").chmod(0o755)
        self.said, said = os.pipe()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("GRISTMILL_")}
        python = Path(sys.executable).parent
        self.bash = subprocess.Popen(
            [shutil.which("bash"), "--norc", "--noprofile"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=(said,), start_new_session=True,
            env={**inherited, **CREDENTIALS, "PATH": f"{tools}:{python}:{os.environ['PATH']}", "TOOLS": str(tools), "HOME": str(folder)},
        )  # fmt: skip
        os.close(said)
        self.result = os.fdopen(self.said, "r")
        self.write(f"exec 9>&{said}; set -m; {FUNCTIONS}")

    def write(self, text):
        self.bash.stdin.write((text + "\n").encode())
        self.bash.stdin.flush()

    def port(self, host, known="7440") -> int:
        """The local port that stands for a port of a machine on the page."""
        return self.ports.setdefault((host, known), free_port())

    def home(self, host) -> Path:
        """The folder of a machine, with the files of the repository that commands may use."""
        home = self.folder / (host or "here")
        if not home.is_dir():
            home.mkdir()
            for name in ("docs", "examples"):
                (home / name).symlink_to(ROOT / name)
            for place in ("etc/systemd/system", "home/alice", "backup", "usr/local/bin", "var/lib", "target/release"):
                (home / place).mkdir(parents=True)
            (home / "target/release/gristmill").symlink_to(binary())
        return home

    def meant(self, text: str, host: str) -> str:
        """The command of the page with local paths and ports."""
        text = re.sub(r"\b([a-z]+[0-9]+):(74\d\d)\b", lambda found: f"localhost:{self.port(*found.groups())}", text)
        own = lambda found: f"127.0.0.1:{self.port(host, found[1])}"  # noqa: E731
        text = re.sub(r"\b(?:127\.0\.0\.1|0\.0\.0\.0):(74\d\d)\b", own, text)
        if text.startswith("gristmill up ") and "--listen" not in text:
            # The default port may be in use on this machine.
            text = text.replace("gristmill up ", f"gristmill up --listen 127.0.0.1:{self.port(host)} ")
        return PLACES.sub(lambda found: f"{self.home(found[1] or host)}/", text)

    def shown(self, text: str, host: str) -> str:
        """The output with the paths and ports of the page."""
        text = text.replace(f"{self.home(host)}/", "/")
        for (name, known), port in self.ports.items():
            text = text.replace(f"localhost:{port}", f"{name or 'localhost'}:{known}")
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{known}")
        return text

    def run(self, typed: Typed) -> str:
        """Runs a command and returns all its output. A command in the background runs until its output is that of the page."""
        self.number += 1
        out = self.folder / f"out{self.number}"
        home = self.home(typed.host)
        go = f"cd {home}; MACHINE={home}\n" if typed.host != self.here else ""
        self.here = typed.host
        self.write(f"{go}{{\n{self.meant(typed.command, typed.host)}\n}} > {out} 2>&1 < /dev/null; echo {self.number} >&9")
        ended = self.result.readline()
        assert ended == f"{self.number}\n", f"line {typed.line}: the shell ended"
        look = lambda: self.shown(out.read_text(errors="replace"), typed.host)  # noqa: E731
        if typed.command.endswith("&"):
            until(lambda: same(typed.wanted, look()), f"line {typed.line} prints {typed.wanted}", TIMEOUT)
        return look()

    def end(self):
        """Ends the shell and all processes that were started in it."""
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.bash.wait()
        self.result.close()
        until(lambda: not self.left(), "what a page started ends")

    def left(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                at = os.readlink(entry / "cwd")
                running = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            except OSError:
                continue
            if running and at.startswith(f"{self.folder}/"):
                found.append(int(entry.name))
                os.kill(int(entry.name), signal.SIGKILL)
        return found


def masked(text: str) -> str:
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    return text


def same(wanted: str, got: str) -> bool:
    return doctest.OutputChecker().check_output(masked(wanted), masked(got), HOW)
