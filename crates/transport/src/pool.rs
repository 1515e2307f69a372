//! Unused HTTP/1.1 connections, kept for later requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

use crate::request_body::OutgoingBody;
use crate::{Address, MAX_ADDRESSES, MAX_IDLE_AGE, MAX_IDLE_PER_ADDRESS};

/// How long a connection may take to be ready again after the last byte of an answer. A connection that needs more time
/// is still sending a request body that was answered early, and is not used.
const READY_WAIT: Duration = Duration::from_millis(100);

pub(crate) type Connection = SendRequest<OutgoingBody>;

struct Idle {
    connection: Connection,
    since: Instant,
}

impl Idle {
    fn is_usable(&self) -> bool {
        !self.connection.is_closed() && self.since.elapsed() < MAX_IDLE_AGE
    }
}

#[derive(Default)]
pub(crate) struct Pool {
    idle: Mutex<HashMap<Address, Vec<Idle>>>,
}

impl Pool {
    /// Takes the most recently used connection that seems usable.
    pub async fn take(&self, address: &Address) -> Option<Connection> {
        loop {
            let mut idle = self.pop(address)?;
            if idle.is_usable()
                && matches!(tokio::time::timeout(READY_WAIT, idle.connection.ready()).await, Ok(Ok(())))
            {
                return Some(idle.connection);
            }
        }
    }

    fn pop(&self, address: &Address) -> Option<Idle> {
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.get_mut(address)?;
        let last = kept.pop();
        if kept.is_empty() {
            all.remove(address);
        }
        last
    }

    /// Keeps a connection whose answer was read to its end.
    pub fn put(&self, address: &Address, connection: Connection) {
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_ADDRESSES && !all.contains_key(address) {
            all.clear();
        }
        let kept = all.entry(address.clone()).or_default();
        kept.retain(Idle::is_usable);
        if kept.len() < MAX_IDLE_PER_ADDRESS {
            kept.push(Idle { connection, since: Instant::now() });
        }
    }
}
