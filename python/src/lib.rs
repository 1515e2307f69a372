//! The extension module of the Python package `gristmill`: what its Python sources build on, private to them.
//!
//! Whatever waits does so on a thread of its own while the caller holds no lock of the interpreter, so that other
//! threads of Python go on and Ctrl-C is heard. Sizes are bytes, positions count from 0, elements of rows are
//! little-endian.

mod connection;
mod convert;
mod copy;
mod dataset;
mod errors;
mod files;
mod fork_guard;
mod joined_files;
mod program;
mod quantiles;
mod reader;
mod reduction;
mod rows;
mod run;
mod source;
mod tree;
mod variable_location;
mod wait;
mod watch;

#[pyo3::pymodule]
mod _gristmill {
    #[pymodule_export]
    use super::connection::{Connection, parse};
    #[pymodule_export]
    use super::copy::{get, get_bytes, put, put_local};
    #[pymodule_export]
    use super::dataset::Dataset;
    #[pymodule_export]
    use super::files::{is_directory, list_outside, ls, remove, stat};
    #[pymodule_export]
    use super::program::main;
    #[pymodule_export]
    use super::quantiles::quantile_passes;
    #[pymodule_export]
    use super::reader::Reader;
    #[pymodule_export]
    use super::run::{parameters, run};
    #[pymodule_export]
    use super::tree::{copy, get_folder, put_folder, remove_all, rename, usage};
    #[pymodule_export]
    use super::watch::Watch;

    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
