//! The entry node of a cluster whose nodes are noted in Ceph.

use std::time::{Duration, Instant};

use gristmill_rados::{LocationError, NodeRegistry, RadosLocation, RadosOptions, RegistryError};

use crate::ClientError;

/// The addresses of such clusters begin with this.
const SCHEME: &str = "rados://";

/// Pause between two looks for an entry node that is still starting.
const PAUSE: Duration = Duration::from_millis(500);

/// The address of the entry node. An address of a node is returned as it is, and that of a cluster in Ceph (`rados://POOL/CLUSTER`) is looked up
/// there, with the cluster and the user of Ceph that the environment names. `wait` is the time for which an entry node is waited for.
///
/// # Errors
/// It fails if the place in Ceph has no valid name, if Ceph does not answer or refuses, and if no entry node is noted there.
pub(crate) fn find(entry: &str, wait: Duration) -> Result<String, ClientError> {
    if !entry.starts_with(SCHEME) {
        return Ok(entry.to_owned());
    }
    let location = entry.parse().map_err(|error: LocationError| ClientError::Usage(error.to_string()))?;
    let begun = Instant::now();
    loop {
        match look_up(&location) {
            Err(RegistryError::NoCluster(_) | RegistryError::NoEntry(_)) if begun.elapsed() < wait => {
                std::thread::sleep(PAUSE);
            }
            found => return Ok(found?),
        }
    }
}

fn look_up(location: &RadosLocation) -> Result<String, RegistryError> {
    NodeRegistry::open(location, &RadosOptions::of_environment().user)?.entry_address()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_in_ceph_are_looked_up() {
        for address in ["127.0.0.1:7440", "unix:/run/g.sock"] {
            assert_eq!(find(address, Duration::ZERO).ok().as_deref(), Some(address));
        }
        for wrong in ["rados://", "rados://pool", "rados://pool/a/b"] {
            assert!(find(wrong, Duration::ZERO).is_err_and(|error| error.is_usage()), "{wrong}");
        }
    }
}
