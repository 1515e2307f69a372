"""Files of servers that stand for Azure and for Google: read by the process that asks, and by storage nodes.

`make test-emulators` starts the servers and runs these tests, and `make test` does not.
"""

import math
import os
import urllib.parse
import urllib.request

import attached
import netCDF4
import numpy as np
import pytest
from cluster import Up

import gristmill as gm

pytestmark = pytest.mark.emulators

NODES = 3
BUCKET = "bucket"


def address(name):
    if name not in os.environ:
        pytest.skip(f"{name} is not set: scripts/emulators starts the servers")
    return os.environ[name]


class Azure:
    scheme, path = "az", "/azure"

    def put(self, key, content):
        name = f"/devstoreaccount1/{BUCKET}/{urllib.parse.quote(key)}"
        url = f"http://{address('GRISTMILL_AZURITE')}{name}?{address('GRISTMILL_AZURITE_SAS')}"
        request = urllib.request.Request(url, content, {"x-ms-blob-type": "BlockBlob"}, method="PUT")
        urllib.request.urlopen(request).read()


class Google:
    scheme, path = "gs", "/google"

    def put(self, key, content):
        name = urllib.parse.quote(key, safe="")
        url = f"http://{address('GRISTMILL_FAKE_GCS')}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}"
        urllib.request.urlopen(urllib.request.Request(url, content, method="POST")).read()


@pytest.fixture(scope="module")
def up(clusters):
    """Storage nodes with both buckets as trees."""
    address("GRISTMILL_AZURITE")
    up = clusters(Up, nodes=NODES, args=("--admin", "anonymous"))
    for one in (Azure, Google):
        said = up.grist.ok("attach", f"{one.scheme}://{BUCKET}", up.url(one.path))
        assert b"0, 1, 2" in said
    return up


@pytest.fixture(params=[Azure, Google], ids=["azure", "google"])
def bucket(request):
    address("GRISTMILL_AZURITE")
    return request.param()


@pytest.fixture(params=["bare", "attached"])
def url(request, bucket, up):
    """The URL of a key: in the bucket, or in the tree of the nodes."""
    bare = f"{bucket.scheme}://{BUCKET}"
    return lambda key: f"{bare}/{key}" if request.param == "bare" else up.url(f"{bucket.path}/{key}")


def test_sums_are_exact_over_several_requests(grist, bucket, url):
    random = np.random.default_rng(5)
    numbers = random.normal(size=1_300_001) * 10.0 ** random.integers(-9, 9, 1_300_001)
    bucket.put("numbers/x y.f64", numbers.tobytes())
    assert grist.ask("sum", url("numbers/x y.f64"), "--type", "f64")["sum"] == math.fsum(numbers)


def test_folders_are_listed_in_pages(grist, bucket, url):
    """A folder that is longer than a page of the store, with a folder in it."""
    names = [f"{number:04}.u8" for number in range(1100)]
    for name in names:
        bucket.put(f"many/{name}", b"x")
    bucket.put("many/0500/inner.u8", b"x")
    listed = grist.ok("ls", url("many")).decode().split()
    assert listed == sorted([*names, "0500/"], key=lambda name: name.rstrip("/"))


def test_variables_are_those_that_netcdf4_reads(tmp_path, bucket, url):
    values = attached.made_temperatures(tmp_path)
    bucket.put("nc/t.nc", (tmp_path / "t.nc").read_bytes())
    with netCDF4.Dataset(tmp_path / "t.nc") as file:
        np.testing.assert_array_equal(file["t"][:], values)
    found = gm.open_dataset(url("nc/t.nc"))["t"]
    np.testing.assert_array_equal(found.max("t").values, values.max(axis=0))
    np.testing.assert_array_equal(found[3, 5:9, ::7].values, values[3, 5:9, ::7])
    for path in (tmp_path / "t3.zarr").rglob("*"):
        if path.is_file():
            bucket.put(f"zarr/{path.relative_to(tmp_path)}", path.read_bytes())
    found = gm.open_dataset(url("zarr/t3.zarr"))["t"]
    np.testing.assert_array_equal(found.min(("y", "x")).values, values.min(axis=(1, 2)))


def test_an_object_that_is_missing_is_told(grist, url):
    run = grist("run", "sum", url("nothing/there.f64"), "--type", "f64")
    assert run.returncode != 0 and b"nothing/there.f64" in run.stderr
