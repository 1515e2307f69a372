"""Talks to gristmill-probe, which measures requests without the start of a process."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def release_binary(name):
    """The path of a release build of this binary."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return ROOT / target / "release" / name


class Probe:
    """A running gristmill-probe; use with `with`."""

    def __init__(self, binary, prefix=(), enter=None):
        """`prefix` is a command that runs another one, for example in a network namespace. `enter` is called in the child before
        it runs."""
        if not Path(binary).is_file():
            raise SystemExit(f"{binary} is missing; build it with: cargo build --release -p gristmill-probe")
        self.process = subprocess.Popen(
            [*prefix, str(binary)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            preexec_fn=enter,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, op, **command):
        """Sends a command and returns its answer. Paths may be of type Path."""
        self.send(op, **command)
        return self.receive()

    def send(self, op, **command):
        """Sends a command. `receive` waits for its answer."""
        self.asked = json.dumps({"op": op, **{n: v for n, v in command.items() if v is not None}}, default=str)
        self.process.stdin.write(self.asked + "\n")

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"gristmill-probe ended while it was asked {self.asked}")
        answer = json.loads(line)
        if "error" in answer:
            raise SystemExit(f"gristmill-probe {self.asked}: {answer['error']}")
        return answer

    def run(self, kernel, path, **options):
        return self.ask("run", kernel=kernel, path=path, **options)


def stripe(probe, source, directory, targets, unit):
    """Stripes `source` over new directories and returns the layout file."""
    directory.mkdir(parents=True, exist_ok=True)
    dirs = [directory / f"target{n}" for n in range(targets)]
    layout = directory / "striped.grist"
    probe.ask("put", source=source, path=layout, targets=dirs, stripe=unit)
    return layout
