"""Trees outside a cluster that tests attach: a folder that all nodes see, a bucket, a web server."""

import shutil
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import web_servers
import zarr


class Mounted:
    """A folder that stands for a mounted file system."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.chmod(0o755)
        self.source = str(folder)
        self.env = {}
        self.options = ()

    def put(self, key, content):
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        # Like programs that replace a file.
        (path.parent / ".new").write_bytes(content)
        (path.parent / ".new").rename(path)

    def put_folder(self, folder, key):
        shutil.copytree(folder, self.folder / key, dirs_exist_ok=True)

    def remove(self, key):
        (self.folder / key).unlink()

    def end(self):
        pass


class Bucket(web_servers.S3):
    # The environment of the nodes names the server.
    options = ()

    @property
    def source(self):
        return f"s3://{self.bucket}"


class WebServer(web_servers.Nginx):
    env = {}
    options = ("--allow-local",)

    @property
    def source(self):
        return self.url("").rstrip("/")


def made(kind, tmp_path_factory):
    """A tree of a kind, to be ended by the caller."""
    if kind == "s3":
        pytest.importorskip("moto", reason="moto is not installed")
        return Bucket()
    if kind == "nginx" and web_servers.nginx_path() is None:
        pytest.skip("nginx is not installed: scripts/web_server installs it")
    folder = tmp_path_factory.mktemp(kind)
    # Other users must be able to reach a mount.
    return Mounted(folder) if kind == "mount" else WebServer(folder)


def made_temperatures(folder):
    """Makes the same variable as netCDF-4 whose chunks cross stripes (t.nc), and as Zarr of both versions. Returns its values."""
    values = np.random.default_rng(7).normal(280, 10, (24, 340, 400)).astype("f4")
    with netCDF4.Dataset(folder / "t.nc", "w") as file:
        for name, length in zip("tyx", values.shape, strict=True):
            file.createDimension(name, length)
        file.createVariable("t", "f4", tuple("tyx"), zlib=True, complevel=1, chunksizes=(5, 170, 400))[:] = values
    assert (folder / "t.nc").stat().st_size > 8 << 20
    for version in (2, 3):
        made = zarr.create_array(
            folder / f"t{version}.zarr", name="t", shape=values.shape, chunks=(7, 170, 400), dtype="f4",
            zarr_format=version, fill_value=0, dimension_names=tuple("tyx") if version == 3 else None,
        )  # fmt: skip
        made[:] = values
    return values
