//! The hosts where the objects of a file lie.

use std::collections::HashMap;

use gristmill_backend::HostStripes;
use rustix::io::Errno;

use crate::client::{FileLayout, LocatedFile, Mounted};

/// Most objects of a file whose places are told. The places of a longer file are not known.
pub const MAX_LOCATED_OBJECTS: u64 = 4_096;

/// Most sets of objects whose places are told, of a file with several stripes side by side.
pub const MAX_LOCATED_SETS: u64 = 64;

/// The names and addresses of the hosts of the storage daemons of a file.
struct Hosts<'a> {
    mounted: &'a Mounted,
    file: LocatedFile<'a>,
    known: HashMap<u32, Vec<String>>,
}

impl Hosts<'_> {
    /// The host from whose daemon the byte at an offset is read. Empty if it is not known, for example while no daemon has its object.
    fn of_byte(&mut self, offset: u64) -> Vec<String> {
        let Ok(daemon) = self.file.daemon_of(offset) else { return Vec::new() };
        let names = || {
            let address = self.mounted.address_of(daemon).ok().map(|address| address.to_string());
            let host = self.mounted.host_of(daemon).ok().flatten();
            host.into_iter().chain(address).collect()
        };
        self.known.entry(daemon).or_insert_with(names).clone()
    }
}

/// The hosts of the first `length` bytes of a file in this layout. They are computed from the map of the cluster, which the client must
/// have.
pub(crate) fn locate(
    mounted: &Mounted,
    path: &str,
    layout: FileLayout,
    length: u64,
) -> Result<Vec<HostStripes>, Errno> {
    let FileLayout { unit, count, object } = layout;
    // The stripes of a set of objects are dealt to them in turn.
    let set = object.saturating_mul(count);
    let sets = length.div_ceil(set);
    if sets.saturating_mul(count) > MAX_LOCATED_OBJECTS || count > 1 && sets > MAX_LOCATED_SETS {
        return Ok(Vec::new());
    }
    let mut hosts = Hosts { mounted, file: mounted.open_path(path)?, known: HashMap::new() };
    if count == 1 {
        let hosts = (0..sets).map(|number| hosts.of_byte(number * set)).collect();
        return Ok(vec![HostStripes { end: None, unit: object, hosts }]);
    }
    let of_set = |number: u64| {
        let first = number * set;
        let hosts = (0..count).map(|stripe| hosts.of_byte(first + stripe * unit)).collect();
        HostStripes { end: Some(first + set).filter(|end| *end < length), unit, hosts }
    };
    Ok((0..sets).map(of_set).collect())
}
