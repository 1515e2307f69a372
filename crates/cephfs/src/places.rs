//! The hosts where the objects of a file lie.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_backend::HostStripes;
use rustix::io::Errno;

use crate::client::{FileLayout, LocatedFile, Mounted};

/// Most stripes of a file whose places are told. The places of a longer file are not known. With one stripe side by side an object counts
/// as a stripe.
pub const MAX_LOCATED_STRIPES: u64 = 1 << 16;

/// Most sets of objects of a file that are told as one component each, if the file has several stripes side by side. The stripes of a
/// longer file are told one by one.
pub const MAX_LOCATED_SETS: u64 = 64;

/// The names and addresses of the hosts of the storage daemons of a file.
struct Hosts<'a> {
    mounted: &'a Mounted,
    file: LocatedFile<'a>,
    known: HashMap<u32, Arc<[String]>>,
}

impl Hosts<'_> {
    /// The host from whose daemon the byte at an offset is read. Empty if it is not known, for example while no daemon has its object.
    fn of_byte(&mut self, offset: u64) -> Arc<[String]> {
        let Ok(daemon) = self.file.daemon_of(offset) else { return Arc::default() };
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
    let in_sets = count > 1 && sets <= MAX_LOCATED_SETS && sets.saturating_mul(count) <= MAX_LOCATED_STRIPES;
    let stripe = if count == 1 { object } else { unit };
    if !in_sets && length.div_ceil(stripe) > MAX_LOCATED_STRIPES {
        return Ok(Vec::new());
    }
    let mut hosts = Hosts { mounted, file: mounted.open_path(path)?, known: HashMap::new() };
    if count == 1 {
        let hosts = (0..sets).map(|number| hosts.of_byte(number * set)).collect();
        return Ok(vec![HostStripes { end: None, unit: object, hosts }]);
    }
    let mut of_set = |number: u64| -> Vec<Arc<[String]>> {
        (0..count).map(|stripe| hosts.of_byte(number * set + stripe * unit)).collect()
    };
    if in_sets {
        let component = |number: u64| {
            let end = Some((number + 1) * set).filter(|end| *end < length);
            HostStripes { end, unit, hosts: of_set(number) }
        };
        return Ok((0..sets).map(component).collect());
    }
    let mut all = Vec::new();
    for number in 0..sets {
        let of_set = of_set(number);
        let stripes = set.min(length - number * set).div_ceil(unit) as usize;
        all.extend(of_set.iter().cycle().take(stripes).cloned());
    }
    Ok(vec![HostStripes { end: None, unit, hosts: all }])
}
