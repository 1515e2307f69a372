"""The `gristmill` command of the Python package."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from python_package import TIMEOUT, cluster, gm, huge, until_opened  # noqa: F401


def test_the_command_is_the_same(cluster, tmp_path):
    gm.put(np.arange(10.0), cluster.path("ten.f64"))
    script = Path(sys.executable).parent / "gristmill"
    for command in ([sys.executable, "-m", "gristmill"], [str(script)]):
        run = [*command, "run", "sum", cluster.path("ten.f64"), "--type", "f64"]
        done = subprocess.run(run, capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0 and done.stdout.split() == ["sum", "45.0", "count", "10"]
        bad = subprocess.run([*command, "run", "summ", "x"], capture_output=True, text=True, timeout=TIMEOUT)
        assert bad.returncode == 2 and bad.stderr.startswith("gristmill: there is no kernel") and not bad.stdout
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT)
        assert version.stdout == f"gristmill {gm.__version__}\n"


def test_ctrl_c_ends_the_command(huge):
    child = subprocess.Popen(
        [sys.executable, "-m", "gristmill", "bench", str(huge)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until_opened(child, huge)
    child.send_signal(signal.SIGINT)
    assert child.wait(TIMEOUT) == -signal.SIGINT


def test_no_name_of_a_result_hides_another(cluster):
    shown = subprocess.run(
        [sys.executable, "-m", "gristmill", "kernels", "--json"], capture_output=True, check=True, timeout=TIMEOUT
    )
    assert b'"histogram"' in shown.stdout
    taken = {"kernel", "rows", "report", "numerics", "keys", "items", "values", "get"}
    text = b"1 2\n3 4\n"
    gm.put(text, cluster.path("names"))
    gm.put(np.arange(1.0, 4.0), cluster.path("names.f64"))
    for kernel, how in {
        "count": {}, "first": {}, "last": {}, "wc": {}, "sum": {"type": "f64"}, "mean": {"type": "f64"},
        "var": {"type": "f64"}, "min": {"type": "f64"}, "max": {"type": "f64"}, "minmax": {"type": "f64"},
        "histogram": {"type": "f64"}, "lookup": {"type": "f64", "where": "> 0"}, "grep": {"pattern": "1"},
    }.items():
        answer = gm.run(kernel, cluster.path("names.f64" if "type" in how else "names"), **how)
        assert not taken & set(answer), kernel
        for name, value in answer.items():
            np.testing.assert_equal(getattr(answer, name), value)
    assert gm.run("first", cluster.path("names")).first == "1 2"
    gm.put(b"caf\xe9\n", cluster.path("names"))
    assert gm.run("first", cluster.path("names")).first == b"caf\xe9"
