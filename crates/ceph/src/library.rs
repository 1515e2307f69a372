//! Loads a library.

#![allow(unsafe_code)]

use libloading::Library;

/// Loads a library of the system by its name.
///
/// # Errors
/// It fails if the library is not installed, or needs something that is missing.
pub fn load(name: &str) -> Result<Library, libloading::Error> {
    // SAFETY: the name is that of a library that the administrator of this machine installs. The initialisers of the libraries of Ceph ask
    // nothing of the program.
    unsafe { Library::new(name) }
}

/// Declares functions of a C library, which is loaded when one is needed first, and is never unloaded: its threads may run until the
/// process ends.
///
/// It makes a structure with a pointer for each function, and a function `functions()`, which returns it or the reason why the library
/// cannot be loaded. The caller answers for the types, which must be those of the header of the library.
#[macro_export]
macro_rules! c_library {
    ($library:literal, $functions:ident { $($name:ident($($argument:ty),*) -> $result:ty;)* }) => {
        /// The functions of the library that are used.
        pub(super) struct $functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        /// The library and its functions, once they were loaded.
        static LOADED: std::sync::OnceLock<($crate::libloading::Library, $functions)> = std::sync::OnceLock::new();

        /// The functions of the library.
        ///
        /// # Errors
        /// The error is the reason why it cannot be loaded.
        pub(super) fn functions() -> Result<&'static $functions, String> {
            if let Some((_, functions)) = LOADED.get() {
                return Ok(functions);
            }
            let library = $crate::load($library).map_err(|error| error.to_string())?;
            let functions = $functions {
                // SAFETY: the functions have the types of the header, and the library stays loaded as long as they are kept.
                $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                    .map_err(|error: $crate::libloading::Error| error.to_string())?,)*
            };
            Ok(&LOADED.get_or_init(|| (library, functions)).1)
        }
    };
}
