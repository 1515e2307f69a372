//! Where a store lies.

use std::fmt;
use std::str::FromStr;

/// Longest name of a pool or of a store.
const MAX_NAME: usize = 128;

/// A store in a pool of Ceph: `rados://POOL/NAME`. The name is a namespace of the pool, so several stores share one.
///
/// ```
/// use gristmill_rados::RadosLocation;
///
/// let location: RadosLocation = "rados://era5/node-1".parse()?;
/// assert_eq!((location.pool.as_str(), location.name.as_str()), ("era5", "node-1"));
/// assert!("rados://era5".parse::<RadosLocation>().is_err());
/// # Ok::<(), gristmill_rados::LocationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadosLocation {
    /// The pool.
    pub pool: String,
    /// The name of the store: a namespace of the pool.
    pub name: String,
}

/// A text that names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no store in Ceph: give rados://POOL/NAME, with names of 1 to {MAX_NAME} letters, digits and . _ -"
)]
pub struct LocationError {
    text: String,
}

impl FromStr for RadosLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<RadosLocation, LocationError> {
        let wrong = || LocationError { text: text.chars().take(2 * MAX_NAME).collect() };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_name = |name: &str| (1..=MAX_NAME).contains(&name.len()) && name.chars().all(allowed);
        let (pool, name) =
            text.strip_prefix("rados://").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        if !is_name(pool) || !is_name(name) {
            return Err(wrong());
        }
        Ok(RadosLocation { pool: pool.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for RadosLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rados://{}/{}", self.pool, self.name)
    }
}
