//! What was handed back and is, as far as can be told, not done yet. Pure: seconds are those of the caller's clock.

use std::collections::HashMap;

/// Askers of whom it is remembered what they have to fold.
const MAX_ASKERS: usize = 4096;

/// What askers and the link have to do already.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// When each asker is done with it.
    askers: HashMap<String, f64>,
    /// When the link is done with its bytes.
    link: f64,
}

impl Given {
    /// Something was handed back: whoever asked is done with it so many seconds from now, and the link is so many seconds
    /// longer at work.
    pub fn add(&mut self, asker: &str, now: f64, there: f64, link: f64) {
        if self.askers.len() >= MAX_ASKERS {
            self.askers.retain(|_, until| *until > now);
        }
        if self.askers.len() < MAX_ASKERS {
            self.askers.insert(asker.to_owned(), now + there);
        }
        self.link = self.link.max(now) + link;
    }

    /// Seconds for which the link has to send.
    pub fn link(&self, now: f64) -> f64 {
        (self.link - now).max(0.0)
    }

    /// Seconds for which each asker has to fold.
    pub fn clients(&self, now: f64) -> HashMap<String, f64> {
        self.askers.iter().map(|(name, until)| (name.clone(), (until - now).max(0.0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_back_is_done_some_time() {
        let mut given = Given::default();
        assert_eq!((given.link(5.0), given.clients(5.0).len()), (0.0, 0));
        given.add("one", 5.0, 2.0, 0.5);
        given.add("two", 5.0, 3.0, 0.5);
        assert_eq!(given.link(5.0), 1.0);
        assert_eq!(given.clients(6.0), HashMap::from([("one".into(), 1.0), ("two".into(), 2.0)]));
        assert_eq!((given.link(9.0), given.clients(9.0).values().sum::<f64>()), (0.0, 0.0));
    }

    #[test]
    fn only_so_many_askers_are_remembered() {
        let mut given = Given::default();
        (0..2 * MAX_ASKERS).for_each(|number| given.add(&number.to_string(), 0.0, 1.0, 0.0));
        assert_eq!(given.clients(0.0).len(), MAX_ASKERS);
        // Those who are done make room.
        given.add("late", 2.0, 1.0, 0.0);
        assert_eq!(given.clients(2.0).len(), 1);
    }
}
