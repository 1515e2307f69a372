"""Identities for tests: another user of this machine, names with tokens, and what the nodes refuse to them."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from cluster import Up
from conftest import Gristmill, binary

OTHER = 65534
TOKENS = {"alice": "token-of-alice-0123456789", "bob": "token-of-bob-0123456789-x"}
COMMANDS = {
    "run": lambda url, file: ("run", "count", url, "--type", "u8"),
    "run at the client": lambda url, file: ("run", "count", url, "--type", "u8", "--place", "client"),
    "get": lambda url, file: ("get", url, "-"),
    "stat": lambda url, file: ("stat", url),
    "put": lambda url, file: ("put", file, url),
    "rm": lambda url, file: ("rm", url),
    "chmod": lambda url, file: ("chmod", "666", url),
}


def denied(done, path):
    assert done.returncode in (1, 2) and not done.stdout, done
    text = done.stderr.decode()
    assert text.count("\n") == 1 and path in text, text
    for word in ("12345678", "secret!!"):
        assert word not in text


def store(up, path, content, *args, url=None):
    source = up.folder / "source"
    source.write_bytes(content)
    up.grist.ok("put", source, url or up.socket_url(path), *args)


def owner(up, path, **how):
    return json.loads(up.grist.ok("stat", up.url(path), "--json", **how))["owner"]


@pytest.fixture(scope="module")
def socket():
    # The path of a socket must be short, and the other user must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="gm"))
    folder.chmod(0o755)
    yield folder / "s.sock"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def up(clusters, socket):
    up = clusters(Up, nodes=2, args=("--socket", socket))
    up.socket_url = lambda path: f"grist+unix://{socket}:{path}"
    return up


class Other(Gristmill):
    """The program run by another user."""

    def __init__(self, cwd):
        super().__init__(cwd)
        copy = cwd / "gristmill"
        if not copy.exists():
            shutil.copy(binary(), copy)
            copy.chmod(0o755)
        self.copy = copy

    def __call__(self, *args, stdout=subprocess.PIPE, **_):
        return subprocess.run(
            [self.copy, *map(str, args)], cwd="/", env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=subprocess.PIPE, timeout=60, user=OTHER, group=OTHER, extra_groups=[],
        )  # fmt: skip


@pytest.fixture(scope="module")
def other():
    if os.getuid() != 0:
        pytest.skip("only root can ask as another user")
    folder = Path(tempfile.mkdtemp(prefix="gm-other"))
    folder.chmod(0o755)
    (folder / "file").write_bytes(b"12345678")
    (folder / "file").chmod(0o644)
    yield Other(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    Gristmill(folder).ok("cert", "--dir", folder)
    return folder


def write_tokens(folder, mode=0o600):
    path = folder / f"tokens-{mode:o}"
    path.write_text("# who may come in\n\n" + "".join(f"{n} {t}\n" for n, t in TOKENS.items()))
    path.chmod(mode)
    return path


def tls_args(certificates):
    return (
        "--cert", certificates / "cert.pem", "--tls-key", certificates / "key.pem",
        "--ca", certificates / "ca.pem", "--tokens", write_tokens(certificates),
    )  # fmt: skip


def who(certificates, name):
    return {"GRISTMILL_CA": str(certificates / "ca.pem"), "GRISTMILL_TOKEN": TOKENS[name]}
