"""The extension of xarray: ``ds.gristmill``, ``ds.to_netcdf(url)``, and ``load`` for stored arrays.

xarray takes longer to import than all of Gristmill, and the command does not need it. So it is extended when it is
imported, or at once if it is imported already.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

XARRAY = "xarray"


def extend_xarray() -> None:
    """Extends xarray now, or when it is imported. It must be called once."""
    if XARRAY not in sys.modules:
        sys.meta_path.insert(0, _Finder())
    # xarray is incomplete while its own import imports this package, as for an engine.
    elif not getattr(getattr(sys.modules[XARRAY], "__spec__", None), "_initializing", False):
        _extend()


def _extend() -> None:
    importlib.import_module(f"{__package__}.accessor")


class _Finder(MetaPathFinder):
    """A finder that wraps the loader of xarray once, and then removes itself."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != XARRAY or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """A loader that extends xarray after it has loaded it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Only the original loader knows the resources of the package.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException:
            # The next import may succeed.
            sys.meta_path.insert(0, _Finder())
            raise
        _extend()
