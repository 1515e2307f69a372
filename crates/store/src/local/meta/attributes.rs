//! Attributes of objects.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Transaction, params};

use super::Meta;
use crate::Result;

/// New values of attributes by name. `None` removes an attribute.
pub(in crate::local) type Changes = BTreeMap<String, Option<Vec<u8>>>;

impl Meta {
    pub(in crate::local) fn put_attributes(&self, birth: u64, changes: &Changes) -> Result<()> {
        self.commit("store attributes in", |transaction| put_attributes(transaction, birth, changes))
    }

    pub(in crate::local) fn attribute(&self, birth: u64, name: &str) -> Result<Option<Vec<u8>>> {
        self.query("read", |connection| {
            let mut statement =
                connection.prepare_cached("SELECT value FROM attributes WHERE object = ? AND name = ?")?;
            statement.query_row(params![birth as i64, name], |row| row.get(0)).optional()
        })
    }

    pub(in crate::local) fn attribute_names(&self, birth: u64) -> Result<Vec<String>> {
        self.query("read", |connection| {
            let mut statement =
                connection.prepare_cached("SELECT name FROM attributes WHERE object = ? ORDER BY name")?;
            statement.query_map([birth as i64], |row| row.get(0))?.collect()
        })
    }
}

pub(super) fn put_attributes(
    transaction: &Transaction<'_>,
    birth: u64,
    changes: &Changes,
) -> rusqlite::Result<()> {
    for (name, value) in changes {
        match value {
            Some(value) => transaction
                .prepare_cached(
                    "INSERT INTO attributes VALUES (?1, ?2, ?3)
                     ON CONFLICT (object, name) DO UPDATE SET value = ?3",
                )?
                .execute(params![birth as i64, name, value])?,
            None => transaction
                .prepare_cached("DELETE FROM attributes WHERE object = ? AND name = ?")?
                .execute(params![birth as i64, name])?,
        };
    }
    Ok(())
}
