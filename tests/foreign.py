"""Clusters for clients that know nothing of Gristmill."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from cluster import Up
from conftest import Gristmill

TOKEN = "a-token-of-alice-for-tests"


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(1).normal(size=40_000)


TEXT = b"".join(b"line %d of some text\n" % n for n in range(5000)) + b"the last one"


@pytest.fixture(scope="module")
def socket():
    # The path of a socket must be short, whatever the temporary directory of the tests is.
    folder = Path(tempfile.mkdtemp(prefix="gm"))
    yield folder / "s.sock"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def up(clusters, socket, values):
    up = clusters(Up, nodes=3, args=("--socket", socket))
    up.put("/data.f64", values.tobytes(), "--stripe", "4KiB")
    up.put("/text", TEXT, "--stripe", "1000B")
    up.put("/dir/inner", b"12345")
    return up


@pytest.fixture(scope="module")
def tls(clusters, tmp_path_factory):
    """A cluster with certificates and tokens."""
    folder = tmp_path_factory.mktemp("tls")
    tokens = folder / "tokens"
    tokens.write_text(f"alice {TOKEN}\n")
    tokens.chmod(0o600)
    Gristmill(folder).ok("cert", "--dir", folder)
    given = ("--cert", folder / "cert.pem", "--tls-key", folder / "key.pem", "--ca", folder / "ca.pem")
    up = clusters(Up, nodes=2, args=(*given, "--tokens", tokens))
    up.ca = folder / "ca.pem"
    up.settings = {"GRISTMILL_CA": str(up.ca), "GRISTMILL_TOKEN": TOKEN}
    return up
