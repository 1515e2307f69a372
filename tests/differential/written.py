"""Data sets as Python that writes them. The tests and the scripts for a difference use the same code."""

import numpy as np
import xarray as xr

HEADER = "import numpy as np, xarray as xr, netCDF4, numcodecs, zarr\nfrom numpy import inf, nan\n"
TITLE = "{'title': 'made up'}"


def source(made, path):
    """Python code that writes a data set with all its elements. ``path`` is Python code too."""
    lines = zarr_source(made, path) if made.form.startswith("zarr") else netcdf_source(made, path)
    return "\n".join(lines) + "\n"


def zarr_source(made, path):
    lines = ["data = xr.Dataset({"]
    for one in made.variables:
        lines.append(f"    {one.name!r}: xr.Variable({one.dims!r}, {array(one.values)}, {attributes(one.attrs)}),")
    lines += [f"}}, attrs={TITLE})", "encoding = {"]
    for one in made.variables:
        kept = [f"'chunks': {one.chunks!r}"] if one.chunks is not None else []
        kept += [one.codec.strip("{}")] if one.codec != "{}" else []
        kept += ["'_FillValue': None"] if "_FillValue" not in one.attrs else []
        lines.append(f"    {one.name!r}: {{{', '.join(kept)}}},")
    version = made.form[-1]
    how = f"zarr_format={version}, consolidated={version == '2'}, mode='w', encoding=encoding"
    return [*lines, "}", f"data.to_zarr({path}, {how})"]


def netcdf_source(made, path):
    """The code uses netCDF4 itself, because xarray writes no unsigned integers into netCDF-3."""
    lines = [f"with netCDF4.Dataset({path}, 'w', format={made.form!r}) as file:", f"    file.setncatts({TITLE})"]
    for dim, size in made.sizes.items():
        lines.append(f"    file.createDimension({dim!r}, {None if dim in made.unlimited else size})")
    for one in made.variables:
        values, attrs = one.values, dict(one.attrs)
        if values.dtype.kind == "b":
            values, attrs["dtype"] = values.astype("i1"), "bool"
        how = [f"{one.name!r}, {values.dtype.str[1:]!r}, {one.dims!r}, fill_value={literal(attrs.pop('_FillValue', None))}"]
        how += [f"chunksizes={one.chunks!r}"] if one.chunks is not None else []
        how += [f"**{one.codec}"] if one.codec != "{}" else []
        lines += [
            f"    one = file.createVariable({', '.join(how)})",
            "    one.set_auto_maskandscale(False)",
            f"    one.setncatts({attributes(attrs)})",
            f"    one[...] = {array(values)}",
        ]
    return lines


def attributes(attrs):
    return f"{{{', '.join(f'{name!r}: {literal(value)}' for name, value in attrs.items())}}}"


def literal(value):
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({value.item()!r})"
    return repr(value)


def array(values):
    """An array as Python code."""
    text = repr(values.ravel().tolist())
    shape = "" if values.ndim == 1 else f".reshape({values.shape!r})"
    return f"np.array({text}, {values.dtype.str[1:]!r}){shape}"


def write(made, path):
    """Writes a data set to a path."""
    import netCDF4
    import numcodecs
    import zarr

    names = {"np": np, "xr": xr, "netCDF4": netCDF4, "numcodecs": numcodecs, "zarr": zarr}
    names |= {"inf": np.inf, "nan": np.nan, "path": str(path)}
    exec(source(made, "path"), names)
    return path
