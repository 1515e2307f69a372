//! Connections for reading, shared by all threads.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rusqlite::Connection;

use super::schema;
use crate::{NamespaceError, Result};

/// Most reads at a time. Further reads wait.
pub const READERS: usize = 4;

pub(crate) struct Readers {
    connections: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

impl Readers {
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let connections = (0..READERS).map(|_| schema::open_reader(dir).map(Mutex::new));
        Ok(Self { connections: connections.collect::<Result<_>>()?, next: AtomicUsize::new(0) })
    }

    /// Calls `read` with a connection in a transaction, so that it sees one state of the database.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let connection = self.take()?;
        let transaction = connection.unchecked_transaction()?;
        read(&transaction)
    }

    pub(crate) fn close(&mut self) {
        self.connections.clear();
    }

    /// Returns a free connection, or waits for the next one in turn. A panic in another thread has ended its
    /// transaction, so a connection behind a poisoned lock is usable.
    fn take(&self) -> Result<MutexGuard<'_, Connection>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let (ahead, behind) = self.connections.split_at(turn % self.connections.len().max(1));
        for connection in behind.iter().chain(ahead) {
            match connection.try_lock() {
                Ok(free) => return Ok(free),
                Err(TryLockError::Poisoned(free)) => return Ok(free.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        let connection = behind.first().ok_or(NamespaceError::Stopped)?;
        Ok(connection.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
