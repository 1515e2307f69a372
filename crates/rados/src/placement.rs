//! On which storage daemons new pieces lie.
//!
//! Ceph computes from the name of an object to which placement group it belongs, and from the group which storage daemons have it. The first
//! of them (the primary) serves reads. So a name is chosen whose primary is near: names of a piece differ in a salt, and salts are tried one
//! after the other. The function from names to groups is that of Ceph (`ceph_str_hash_rjenkins` and `ceph_stable_mod`). The primaries of groups
//! are asked of the monitors, once a minute for each group. If the map changes later, a piece is read from farther away, and nothing else
//! changes.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gristmill_store::rules::lock;
use gristmill_store::{Result, StoreError};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::RadosLocation;
use crate::client::Pool;
use crate::error::explain;
use crate::hash::{group_of, hash_of};

/// Most salts that are tried for a piece.
pub const MAX_SALTS: u8 = 128;

/// Time for which the primary of a group is not asked again.
const KNOWN_TIME: Duration = Duration::from_secs(60);

/// Which names lie near.
pub(crate) struct Placement {
    location: RadosLocation,
    /// The storage daemons that are near. Without one, names are taken as they come.
    near: BTreeSet<i64>,
    /// The number of placement groups of the pool when the store was opened. Another number makes pieces lie elsewhere, and nothing else.
    groups: u32,
    primaries: Mutex<Primaries>,
}

/// The primaries of groups, and when the first of them was asked.
#[derive(Default)]
struct Primaries {
    asked: Option<Instant>,
    known: HashMap<u32, i64>,
    /// Whether the monitors did not answer. They are not asked again meanwhile, so that one piece waits for them, and not each of them.
    silent: bool,
}

impl Placement {
    /// A placement near the daemons with one of these addresses.
    ///
    /// # Errors
    /// It fails if the monitors do not answer.
    pub fn new(pool: &Pool, location: &RadosLocation, near: &[IpAddr]) -> Result<Placement> {
        let mut placement = Placement {
            location: location.clone(),
            near: BTreeSet::new(),
            groups: 1,
            primaries: Mutex::default(),
        };
        if near.is_empty() {
            return Ok(placement);
        }
        let map: OsdMap = placement.ask(pool, r#"{"prefix":"osd dump","format":"json"}"#)?;
        let of_pool = map.pools.iter().find(|found| found.name == location.pool);
        placement.groups = of_pool.map_or(1, |found| found.groups.max(1));
        let is_near = |osd: &&Osd| osd.address().is_some_and(|address| near.contains(&address));
        placement.near = map.osds.iter().filter(is_near).map(|osd| osd.number).collect();
        Ok(placement)
    }

    /// The salt for a new piece: the first one that gives the piece a near name. If [`MAX_SALTS`] give none, or the monitors do not answer, it
    /// is 0.
    pub fn salt(&self, pool: &Pool, name: impl Fn(u8) -> String) -> u8 {
        if self.near.is_empty() {
            return 0;
        }
        let primaries = (0..MAX_SALTS).map_while(|salt| Some((salt, self.primary(pool, &name(salt))?)));
        let mut near = primaries.filter(|(_, primary)| self.near.contains(primary));
        near.next().map_or(0, |(salt, _)| salt)
    }

    /// The daemon that serves reads of an object with this name, if the monitors say it.
    fn primary(&self, pool: &Pool, name: &str) -> Option<i64> {
        let group = group_of(hash_of(&self.location.name, name), self.groups);
        let mut primaries = lock(&self.primaries);
        if primaries.asked.is_none_or(|asked| asked.elapsed() > KNOWN_TIME) {
            *primaries = Primaries { asked: Some(Instant::now()), ..Primaries::default() };
        }
        if let Some(primary) = primaries.known.get(&group) {
            return Some(*primary);
        }
        if primaries.silent {
            return None;
        }
        let RadosLocation { pool: pool_name, name: namespace } = &self.location;
        // Names have no characters that JSON escapes.
        let command = format!(
            r#"{{"prefix":"osd map","pool":"{pool_name}","object":"{name}","nspace":"{namespace}","format":"json"}}"#
        );
        let primary = self.ask::<Mapped>(pool, &command).ok().map(|mapped| mapped.up_primary);
        match primary {
            Some(primary) => drop(primaries.known.insert(group, primary)),
            None => primaries.silent = true,
        }
        primary
    }

    fn ask<T: DeserializeOwned>(&self, pool: &Pool, command: &str) -> Result<T> {
        let location = || self.location.to_string();
        let command = CString::new(command).unwrap_or_default();
        let answer = pool
            .ask_monitors(&command)
            .map_err(|errno| explain("find storage daemons of", location(), errno))?;
        serde_json::from_slice(&answer).map_err(|error| StoreError::Io {
            op: "understand the monitors of",
            path: location().into(),
            source: error.into(),
        })
    }
}

/// The answer to `osd dump`.
#[derive(Deserialize)]
struct OsdMap {
    pools: Vec<PoolInMap>,
    osds: Vec<Osd>,
}

#[derive(Deserialize)]
struct PoolInMap {
    #[serde(rename = "pool_name")]
    name: String,
    #[serde(rename = "pg_num")]
    groups: u32,
}

#[derive(Deserialize)]
struct Osd {
    #[serde(rename = "osd")]
    number: i64,
    /// `IP:PORT/NONCE`.
    #[serde(rename = "public_addr")]
    address: String,
}

impl Osd {
    fn address(&self) -> Option<IpAddr> {
        let (socket, _) = self.address.rsplit_once('/')?;
        socket.parse::<SocketAddr>().ok().map(|socket| socket.ip())
    }
}

/// The answer to `osd map`.
#[derive(Deserialize)]
struct Mapped {
    /// The first of the daemons that the group has now. While objects are moved, another one may serve it (`acting_primary`).
    up_primary: i64,
}
