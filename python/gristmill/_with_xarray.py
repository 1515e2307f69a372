"""What xarray gains from an import of this package: ``ds.gristmill``, ``ds.to_netcdf(url)``, and ``load`` that loads.

xarray takes longer to import than all of Gristmill, and the command does without it. So it is taught where it is there already, or
as soon as it is imported.
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


def teach_xarray() -> None:
    """Now, or when xarray is imported. Once is enough."""
    if XARRAY not in sys.modules:
        sys.meta_path.insert(0, _Finder())
    # While xarray itself imports this package, as for an engine, it is not all there.
    elif not getattr(getattr(sys.modules[XARRAY], "__spec__", None), "_initializing", False):
        _teach()


def _teach() -> None:
    importlib.import_module(f"{__package__}._accessor")


class _Finder(MetaPathFinder):
    """Finds xarray as the others do, and has its loader teach it. It is gone after that."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != XARRAY or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """A loader that teaches what it has loaded."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # What asks for resources of the package asks the loader that knows them.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException:
            # The next import may find what this one lacked.
            sys.meta_path.insert(0, _Finder())
            raise
        _teach()
