"""What tests have other processes do. These import this module by its name, and nothing that is beside it."""

import fsspec
import numpy as np

import gristmill as gm


def everything(url, array, dataset, file):
    """What a process does with what it was given, and with what it opens itself."""
    file.seek(1)
    return (
        np.asarray(array[3:5, 2]),
        array.mean(axis=0),
        (array * 2 - 1).max(axis=(1, 2)),
        dataset.b.std("time").values,
        gm.open_dataset(url).a.sum().values,
        fsspec.filesystem("grist").cat_file(url, 1, 9),
        file.read(8),
    )
