"""Arrays, datasets and open files in threads and other processes: workers of dask, forked and spawned children, Ctrl-C."""

import multiprocessing
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import fsspec
import numpy as np
import pytest
import xarray as xr
from children import everything
from cluster import Nodes, until
from python_package import TIMEOUT, cluster, gm, python  # noqa: F401
from watching import CRAWL, requests

VALUES = np.random.default_rng(17).normal(size=(24, 30, 20))


@pytest.fixture(scope="module")
def url(cluster, tmp_path_factory):  # noqa: F811
    path = tmp_path_factory.mktemp("processes") / "a.nc"
    data = xr.Dataset({"a": (("time", "y", "x"), VALUES), "b": (("time", "y", "x"), -VALUES)})
    data.to_netcdf(path, encoding={"a": {"chunksizes": (5, 11, 9)}})
    gm.put(path, cluster.path("processes.nc"), stripe="16KiB")
    return cluster.path("processes.nc")


def right(found):
    slab, mean, most, std, total, some, read = found
    np.testing.assert_array_equal(slab, VALUES[3:5, 2])
    np.testing.assert_allclose(mean, VALUES.mean(0), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(most, (VALUES * 2 - 1).max((1, 2)))
    np.testing.assert_allclose(std, VALUES.std(0), rtol=1e-12)
    np.testing.assert_allclose(total, VALUES.sum(), rtol=1e-12)
    assert some == read and some.startswith(b"HDF\r\n\x1a\n")


def given(url):
    return url, gm.open_arrays(url)["a"], gm.open_dataset(url), fsspec.open(url).open()


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_all_of_it_can_be_pickled(url, pickler):
    parts = given(url)
    right(everything(*pickler.loads(pickler.dumps(parts))))
    # This works also in the middle of an expression, and after the objects were used.
    right(everything(*parts))
    lazy = pickler.loads(pickler.dumps(parts[1][2:9] * 3))
    np.testing.assert_allclose(lazy.sum(axis=0), (VALUES[2:9] * 3).sum(0), rtol=1e-12, atol=1e-13)
    assert len(pickler.dumps(parts[1])) < 20_000


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_children_of_multiprocessing(url, how):
    parts = given(url)
    # The parent uses its connections before and after.
    right(everything(*parts))
    with multiprocessing.get_context(how).Pool(2) as pool:
        waiting = [pool.apply_async(everything, parts) for _ in range(4)]
        for one in waiting:
            right(one.get(TIMEOUT))
    right(everything(*parts))


def test_workers_of_dask(url):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, processes=True, threads_per_worker=2, dashboard_address=None, host="127.0.0.1"
    ) as workers, distributed.Client(workers) as client:
        dataset = gm.open_dataset(url, chunks={})
        both = xr.Dataset({"mean": dataset.a.mean("time"), "most": (dataset.a * dataset.b).max("x")})
        found = both.compute(scheduler=client)
        np.testing.assert_allclose(found["mean"].values, VALUES.mean(0), rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(found["most"].values, (VALUES * -VALUES).max(2))
        kept = dataset.a[3:9].persist(scheduler=client)
        np.testing.assert_array_equal(kept.values, VALUES[3:9])
        for one in [client.submit(everything, *given(url), pure=False) for _ in range(4)]:
            right(one.result(TIMEOUT))


def test_threads_share_what_is_open(url):
    parts = given(url)
    begin = threading.Barrier(4)

    def work(n):
        begin.wait(TIMEOUT)
        # A file of fsspec has only one position, so each thread opens its own.
        return everything(*parts[:3], fsspec.open(url).open())

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            right(found)


# One thread folds an array of practically endless length. The other sends a request meanwhile and reports its end.
GOES_ON = """
import os, sys, threading, gristmill
endless = gristmill.open_arrays(sys.argv[1])["data"]
small = gristmill.open_arrays(sys.argv[2])["data"]
def inside():
    while True:
        names = {frame.f_code.co_name for frame in frames()}
        if "query" in names:
            return
def frames():
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        yield frame
        frame = frame.f_back
thread = threading.Thread(target=lambda: eval(sys.argv[3], {"a": endless}), daemon=True)
thread.start()
inside()
counted = 0
for n in range(50):
    counted += 1
    assert float((small + n).sum()) == 45 + 10 * n
print(counted, thread.is_alive(), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("text", ["a.sum()", "(a * 2 + 1).max()"])
def test_other_threads_go_on_while_one_asks(text, tmp_path):
    np.save(tmp_path / "small.npy", np.arange(10.0))
    child = python(GOES_ON, sparse(tmp_path), tmp_path / "small.npy", text)
    assert child.communicate(timeout=TIMEOUT) == ("50 True\n", "")


def sparse(folder):
    """An array of half a TiB of zeros that takes no space."""
    path = folder / "endless.npy"
    count = 1 << 36
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (count,)})
        file.truncate(file.tell() + 8 * count)
    return path


INTERRUPTED = """
import sys, gristmill
# Nodes that have hardly any share of their processors would leave the work to us.
gristmill.set_options(place="storage")
array = gristmill.open_arrays(sys.argv[1])["data"]
print("opened", flush=True)
try:
    eval(sys.argv[2], {"a": array, "gm": gristmill})
    print("done")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture(scope="module")
def crawling(clusters, tmp_path_factory):
    """Nodes that begin to fold and never end."""
    nodes = clusters(Nodes, nodes=2, args=CRAWL)
    path = tmp_path_factory.mktemp("crawling") / "array.npy"
    np.save(path, np.arange(400_000.0))
    gm.put(path, nodes.url("/array.npy"), on=[1])
    return nodes


@pytest.mark.parametrize("text", ["a.sum()", "(a % 7 - 1).max()", "a[3:300_000].std()"])
def test_ctrl_c_ends_a_reduction_on_the_nodes(crawling, text):
    child = python(INTERRUPTED, crawling.url("/array.npy"), text)
    assert child.stdout.readline() == "opened\n"
    until(lambda: requests(crawling, 1), "the node folds")
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")
    until(lambda: not requests(crawling, 0) and not requests(crawling, 1), "nothing is left of it")


# The signal comes while the main thread is inside a read. The nodes do not list such a read as a request.
INTERRUPTED_INSIDE = """
import os, signal, sys, threading, gristmill
array = gristmill.open_arrays(sys.argv[1])["data"]
main = threading.main_thread().ident
os.kill(int(sys.argv[2]), signal.SIGSTOP)
def watch():
    while True:
        frame, names = sys._current_frames()[main], set()
        while frame is not None:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        if "query" in names:
            os.kill(os.getpid(), signal.SIGINT)
            return
threading.Thread(target=watch, daemon=True).start()
try:
    array[5:100_000].__array__()
    print("done")
except KeyboardInterrupt:
    print("interrupted")
finally:
    os.kill(int(sys.argv[2]), signal.SIGCONT)
print(array[:3].__array__().tolist())
"""


def test_ctrl_c_ends_reading_of_elements(nodes_of_test, tmp_path):
    nodes = nodes_of_test(Nodes, nodes=2)
    np.save(tmp_path / "array.npy", np.arange(400_000.0))
    gm.put(tmp_path / "array.npy", nodes.url("/array.npy"), on=[1])
    child = python(INTERRUPTED_INSIDE, nodes.url("/array.npy"), nodes.pid(1))
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n[0.0, 1.0, 2.0]\n", "")
    assert not requests(nodes, 0) and not requests(nodes, 1)
    assert nodes.works()
