//! Loads the library.

use std::sync::OnceLock;

use libloading::Library;

use super::abi::Functions;

/// The name of the library. The number is that of its interface, which all releases of Ceph since 2016 have.
const NAME: &str = "libcephfs.so.2";

/// The library, once it was loaded. It is never unloaded, because its threads may run until the process ends.
static LOADED: OnceLock<(Library, Functions)> = OnceLock::new();

/// The functions of the library.
///
/// # Errors
/// The error is the reason why it cannot be loaded.
pub(super) fn functions() -> Result<&'static Functions, String> {
    if let Some((_, functions)) = LOADED.get() {
        return Ok(functions);
    }
    let loaded = load(NAME).map_err(|error| error.to_string())?;
    Ok(&LOADED.get_or_init(|| loaded).1)
}

fn load(name: &str) -> Result<(Library, Functions), libloading::Error> {
    // SAFETY: the name is that of libcephfs, which the administrator of this machine installs. Its initialisers ask nothing of the
    // program.
    let library = unsafe { Library::new(name) }?;
    // SAFETY: the library is libcephfs, and both are kept together for ever.
    let functions = unsafe { Functions::find(&library) }?;
    Ok((library, functions))
}
