//! Places where work may run.

use std::fmt;

/// Place where a request runs.
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
    /// All places. Of equally good places, the first is taken. So data is not moved without a gain.
    pub const ALL: [Place; 3] = [Place::Storage, Place::Data, Place::Client];

    /// Index of the place in [`Place::ALL`].
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

    /// The set with this place added.
    #[must_use]
    pub const fn with(self, place: Place) -> Places {
        Places(self.0 | 1 << place as u8)
    }

    /// The set without this place.
    #[must_use]
    pub const fn without(self, place: Place) -> Places {
        Places(self.0 & !(1 << place as u8))
    }

    /// The places that are in both sets.
    #[must_use]
    pub const fn and(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    /// Whether the place is in the set.
    pub const fn has(self, place: Place) -> bool {
        self.0 & 1 << place as u8 != 0
    }

    /// Whether the set has no place.
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
