//! Where work may run.

use std::fmt;

/// Where a request runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// On the storage node that holds the data.
    Storage,
    /// On a data node: a host with cores and no data.
    Data,
    /// At the client.
    Client,
}

impl Place {
    /// All places, in the order in which ties are settled: the data stays where it is if nothing is gained.
    pub const ALL: [Place; 3] = [Place::Storage, Place::Data, Place::Client];

    /// The place's number in [`Place::ALL`].
    pub const fn number(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Storage => "storage",
            Place::Data => "data",
            Place::Client => "client",
        })
    }
}

/// A set of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places(u8);

impl Places {
    /// Every place.
    pub const ALL: Places = Places(0b111);

    /// No place.
    pub const NONE: Places = Places(0);

    /// The set with one more.
    #[must_use]
    pub const fn with(self, place: Place) -> Places {
        Places(self.0 | 1 << place as u8)
    }

    /// The set without one.
    #[must_use]
    pub const fn without(self, place: Place) -> Places {
        Places(self.0 & !(1 << place as u8))
    }

    /// What both have.
    #[must_use]
    pub const fn and(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    /// Whether it is in the set.
    pub const fn has(self, place: Place) -> bool {
        self.0 & 1 << place as u8 != 0
    }

    /// Whether the set has nothing.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The places of the set, in the order of [`Place::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Place> {
        Place::ALL.into_iter().filter(move |place| self.has(*place))
    }
}

impl FromIterator<Place> for Places {
    fn from_iter<I: IntoIterator<Item = Place>>(places: I) -> Places {
        places.into_iter().fold(Places::NONE, Places::with)
    }
}
