//! Estimate of the work that was handed back and is not done yet. Seconds are those of the caller's clock.

use std::collections::HashMap;

/// Largest number of clients in the backlog.
const MAX_CLIENTS: usize = 4096;

/// Work that clients and the link already have.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Time at which each client is done, in seconds.
    clients: HashMap<String, f64>,
    /// Time at which the link has sent its bytes, in seconds.
    link: f64,
}

impl Backlog {
    /// Adds work that was handed back. It takes the client `client_seconds` from `now`, and the link `link_seconds`
    /// more.
    pub fn add(&mut self, client: &str, now: f64, client_seconds: f64, link_seconds: f64) {
        if self.clients.len() >= MAX_CLIENTS {
            self.clients.retain(|_, until| *until > now);
        }
        if self.clients.len() < MAX_CLIENTS {
            self.clients.insert(client.to_owned(), now + client_seconds);
        }
        self.link = self.link.max(now) + link_seconds;
    }

    /// Seconds for which the link still sends.
    pub fn link(&self, now: f64) -> f64 {
        (self.link - now).max(0.0)
    }

    /// Seconds for which each client still folds.
    pub fn clients(&self, now: f64) -> HashMap<String, f64> {
        self.clients.iter().map(|(name, until)| (name.clone(), (until - now).max(0.0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_was_handed_back_ends_after_its_time() {
        let mut backlog = Backlog::default();
        assert_eq!((backlog.link(5.0), backlog.clients(5.0).len()), (0.0, 0));
        backlog.add("one", 5.0, 2.0, 0.5);
        backlog.add("two", 5.0, 3.0, 0.5);
        assert_eq!(backlog.link(5.0), 1.0);
        assert_eq!(backlog.clients(6.0), HashMap::from([("one".into(), 1.0), ("two".into(), 2.0)]));
        assert_eq!((backlog.link(9.0), backlog.clients(9.0).values().sum::<f64>()), (0.0, 0.0));
    }

    #[test]
    fn the_number_of_clients_is_bounded() {
        let mut backlog = Backlog::default();
        (0..2 * MAX_CLIENTS).for_each(|number| backlog.add(&number.to_string(), 0.0, 1.0, 0.0));
        assert_eq!(backlog.clients(0.0).len(), MAX_CLIENTS);
        // Clients that are done make room.
        backlog.add("late", 2.0, 1.0, 0.0);
        assert_eq!(backlog.clients(2.0).len(), 1);
    }
}
