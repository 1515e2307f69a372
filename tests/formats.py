"""The description of a scientific file and its elements, as the command gives them, for comparison with other readers."""

import io
import json

import numpy as np

NUMPY = {
    "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
    "f32": "f4", "f64": "f8",
}  # fmt: skip


def stat(grist, path) -> dict:
    return json.loads(grist.ok("stat", path, "--json"))


def variables(grist, path) -> dict:
    return {variable["name"]: variable for variable in stat(grist, path)["variables"]}


def table(grist, path, name) -> dict:
    """The description of one variable, with every stored chunk: origin -> (file, offset, bytes, mask)."""
    (variable,) = json.loads(grist.ok("stat", path, "--var", name, "--chunks", "--json"))["variables"]
    variable["places"] = {
        tuple(chunk["origin"]): (chunk["file"], chunk["offset"], chunk["bytes"], chunk["mask"])
        for chunk in variable["table"]
        if "offset" in chunk
    }
    return variable


def elements(grist, path, name) -> np.ndarray:
    return np.load(io.BytesIO(grist.ok("get", path, "-", "--var", name)))


def same(ours: np.ndarray, theirs: np.ndarray):
    """Asserts that the elements are the same bit for bit. The byte order of the other array does not matter."""
    theirs = np.asarray(theirs)
    theirs = theirs.astype(theirs.dtype.newbyteorder("<"))
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (ours.dtype, theirs.dtype, ours.shape, theirs.shape)
    assert ours.tobytes() == np.ascontiguousarray(theirs).tobytes()


def fill(variable):
    """The fill value that the command prints, as a NumPy number."""
    value = variable["fill"]
    if isinstance(value, str):
        value = float(value) if variable["type"][0] == "f" else int(value)
    return np.dtype(NUMPY[variable["type"]]).type(value)


def cut(path, bytes_off):
    data = path.read_bytes()
    short = path.with_name("cut-" + path.name)
    short.write_bytes(data[: len(data) - bytes_off])
    return short
