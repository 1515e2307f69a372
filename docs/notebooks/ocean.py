"""A file that looks like the sea surface temperature of a climate model: made up, the same each time, with land where land is.

    python ocean.py [PATH] [DEGREES] [MONTHS]
"""

from __future__ import annotations

import sys

import numpy as np
import xarray as xr

#: Coasts, roughly: longitudes from -180 to 180 and latitudes, in degrees.
LAND = {
    "North America": [(-168, 66), (-156, 71), (-128, 70), (-95, 72), (-82, 67), (-94, 59), (-82, 53), (-77, 62), (-64, 59),
                      (-56, 52), (-66, 44), (-75, 36), (-81, 31), (-81, 25), (-84, 30), (-97, 28), (-97, 22), (-91, 19),
                      (-87, 21), (-88, 15), (-83, 14), (-83, 10), (-78, 9), (-80, 7), (-86, 11), (-94, 16), (-105, 20),
                      (-113, 31), (-110, 23), (-117, 32), (-124, 40), (-124, 48), (-135, 58), (-152, 59), (-165, 55)],
    "Greenland": [(-73, 78), (-60, 82), (-30, 83), (-18, 78), (-22, 70), (-43, 60), (-52, 66), (-58, 75)],
    "South America": [(-78, 8), (-72, 12), (-61, 10), (-50, 1), (-35, -6), (-39, -16), (-48, -27), (-57, -36), (-65, -43),
                      (-69, -53), (-75, -50), (-73, -38), (-70, -19), (-81, -5)],
    "Africa": [(-6, 36), (10, 37), (11, 33), (20, 31), (32, 31), (43, 12), (51, 11), (40, -3), (40, -15), (33, -27),
               (20, -35), (15, -27), (12, -15), (9, 0), (9, 5), (-8, 5), (-17, 14), (-17, 21), (-10, 30)],
    "Madagascar": [(44, -17), (49, -12), (50, -16), (47, -25), (44, -24)],
    "Eurasia": [(-9, 37), (-9, 43), (-1, 44), (-4, 48), (8, 54), (10, 58), (18, 60), (24, 65), (12, 60), (5, 59), (14, 67),
                (27, 71), (41, 67), (60, 69), (80, 73), (105, 78), (140, 73), (180, 69), (178, 62), (162, 59), (157, 51),
                (155, 59), (142, 59), (135, 54), (140, 48), (127, 39), (129, 35), (126, 35), (122, 39), (118, 38), (121, 31),
                (117, 23), (108, 21), (109, 12), (104, 9), (100, 13), (104, 1), (98, 9), (94, 17), (89, 22), (80, 15),
                (77, 8), (73, 20), (66, 25), (57, 26), (50, 30), (52, 24), (59, 22), (52, 16), (43, 13), (35, 28),
                (34, 31), (36, 37), (27, 37), (29, 41), (41, 41), (38, 47), (28, 45), (23, 38), (19, 42), (13, 45),
                (18, 40), (15, 38), (9, 44), (3, 42), (-2, 37)],
    "Britain": [(-5, 50), (1, 51), (-2, 56), (-4, 58), (-6, 57), (-3, 54)],
    "Japan": [(130, 32), (135, 34), (140, 36), (142, 40), (145, 43), (141, 45), (139, 38), (133, 35)],
    "Borneo": [(109, 1), (115, -4), (119, 5), (116, 7)],
    "Sumatra and Java": [(95, 5), (104, -3), (114, -8), (106, -7), (100, -1)],
    "New Guinea": [(131, -1), (141, -3), (150, -10), (143, -9), (138, -8)],
    "Australia": [(114, -22), (122, -18), (130, -12), (136, -12), (140, -17), (142, -11), (146, -19), (153, -26),
                  (150, -37), (140, -38), (131, -31), (118, -35)],
    "New Zealand": [(173, -35), (178, -38), (171, -45), (167, -46), (174, -40)],
    "Antarctica": [(-180, -78), (-150, -76), (-100, -73), (-65, -65), (-60, -75), (-20, -72), (10, -70), (50, -67),
                   (110, -66), (150, -68), (170, -72), (180, -78), (180, -90), (-180, -90)],
}

#: Warm and cold water of currents: latitude and longitude, their reach, kelvin.
CURRENTS = [
    (38, 300, 9, 22, 3.5), (62, 0, 12, 30, 5.0), (36, 152, 8, 24, 3.0), (-20, 283, 14, 11, -3.5), (-22, 9, 12, 9, -3.5),
    (30, 238, 11, 12, -3.0), (22, 341, 12, 9, -2.5), (-1, 256, 5, 34, -2.5), (45, 308, 6, 9, -4.0), (-32, 32, 8, 10, 2.0),
    (-36, 155, 8, 10, 2.0), (70, 35, 8, 30, 3.0),
]  # fmt: skip


def is_land(lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    """Where these points are inside of a coast."""
    found = np.zeros(np.broadcast_shapes(lon.shape, lat.shape), bool)
    east = (lon + 180) % 360 - 180
    for coast in LAND.values():
        for (x0, y0), (x1, y1) in zip(coast, coast[1:] + coast[:1]):
            # Each edge east of a point turns inside into outside.
            crosses = (lat < y0) != (lat < y1)
            found ^= crosses & (east < x0 + (lat - y0) / ((y1 - y0) or 1) * (x1 - x0))
    return found


def ocean(degrees: float = 2.0, months: int = 24, start: int = 2001) -> xr.Dataset:
    """Sea surface temperature and salinity by month, from January of a year, on a grid of so many degrees."""
    rng = np.random.default_rng(2001)
    lat = np.arange(-90 + degrees / 2, 90, degrees)
    lon = np.arange(degrees / 2, 360, degrees)
    month = np.arange(months)[:, None, None]
    phi = np.deg2rad(lat)[:, None]
    # Warm at the equator, warmest in the summer of each half, about two months after the sun.
    mean = 299.8 - 30 * np.sin(phi) ** 2 + 1.5 * np.cos(np.deg2rad(lon - 140)) * np.cos(phi) ** 2
    for at_lat, at_lon, high, wide, more in CURRENTS:
        mean = mean + more * np.exp(-(((lat[:, None] - at_lat) / high) ** 2) - ((((lon - at_lon + 180) % 360 - 180) / wide) ** 2))
    season = 5.0 * np.sin(2 * np.abs(phi)) * np.sign(phi) * np.cos(2 * np.pi * (month - 7.5) / 12)
    pacific = np.exp(-((lat[:, None] / 8) ** 2) - (((lon - 240) / 35) ** 2))
    # Warm and cold events in the east of the tropical Pacific, every few years, and a slow warming of everything.
    event = 1.6 * pacific * np.sin(2 * np.pi * (month - 6) / 43) * np.sin(2 * np.pi * month / 31 + 1)
    trend = 0.02 * month / 12
    waves = sum(
        rng.normal(0, 0.45) * np.cos(k * np.deg2rad(lon) + l * phi * 3 + rng.uniform(0, 6) + month * rng.normal(0, 0.3))
        for k, l in rng.integers(1, 7, (10, 2))
    )
    tos = np.maximum(mean + season + event + trend + waves + rng.normal(0, 0.15, (months, lat.size, lon.size)), 271.35)
    so = 34.5 + 1.5 * np.cos(3 * phi) * np.cos(phi) + 0.1 * waves
    land = is_land(lon[None, :], lat[:, None])
    dims = ("time", "lat", "lon")
    time = xr.date_range(f"{start}-01-01", periods=months, freq="MS") + np.timedelta64(14, "D")
    return xr.Dataset(
        {
            "tos": (dims, np.where(land, np.nan, tos).astype("f4"),
                    {"standard_name": "sea_surface_temperature", "long_name": "Sea surface temperature", "units": "K"}),
            "so": (dims, np.where(land, np.nan, so), {"standard_name": "sea_water_salinity", "units": "1e-3"}),
        },
        {
            "time": time,
            "lat": ("lat", lat, {"standard_name": "latitude", "units": "degrees_north"}),
            "lon": ("lon", lon, {"standard_name": "longitude", "units": "degrees_east"}),
        },
        {"title": "A made-up ocean", "Conventions": "CF-1.8"},
    )  # fmt: skip


def write(
    path: str = "ocean.nc",
    degrees: float = 2.0,
    months: int = 24,
    start: int = 2001,
    chunks: tuple[int, int, int] | None = None,
) -> str:
    """Writes it as netCDF-4: ``tos`` compressed, ``so`` packed into 16 bits, in chunks of half a year where nothing is said."""
    made = ocean(degrees, months, start)
    chunks = chunks or (6, made.sizes["lat"] // 2, made.sizes["lon"] // 2)
    encoding = {
        "tos": {"zlib": True, "shuffle": True, "chunksizes": chunks, "_FillValue": np.float32(1e20)},
        "so": {"dtype": "i2", "scale_factor": 0.001, "add_offset": 20.0, "_FillValue": -32768, "chunksizes": chunks},
        "time": {"units": f"days since {start}-01-01", "calendar": "standard", "dtype": "f8"},
    }
    made.to_netcdf(path, engine="netcdf4", encoding=encoding, unlimited_dims=["time"])
    return path


if __name__ == "__main__":
    path, degrees, months = [*sys.argv[1:], *["ocean.nc", 2, 24][len(sys.argv) - 1 :]]
    print(write(path, float(degrees), int(months)))
