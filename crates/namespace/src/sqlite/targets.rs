//! The storage targets of the cluster.

use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteNamespace;
use super::rows::{numbers_from_bytes, stored_value, wrong_type};
use crate::checks::check_address;
use crate::{MAX_CLUSTER_TARGETS, NamespaceError, Result, TargetId, TargetRecord, clock};

impl SqliteNamespace {
    pub(super) fn join(&self, id: &TargetId, address: &str, holds_files: bool) -> Result<u32> {
        check_address(address)?;
        let (id, address) = (id.clone(), address.to_owned());
        self.writer.call(move |connection| join(connection, &id, &address, holds_files))
    }

    pub(super) fn targets(&self) -> Result<Vec<TargetRecord>> {
        self.readers.with(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT number, id, address, holds_files FROM targets ORDER BY number")?;
            let mut rows = statement.query([])?;
            let mut targets = Vec::new();
            while let Some(row) = rows.next()? {
                targets.push(TargetRecord {
                    number: row.get(0)?,
                    id: stored_value(row.get_ref(1)?.as_str().map_err(wrong_type)?.parse())?,
                    address: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
                    holds_files: row.get(3)?,
                });
            }
            Ok(targets)
        })
    }
}

fn join(connection: &Connection, id: &TargetId, address: &str, holds_files: bool) -> Result<u32> {
    let known = connection
        .prepare_cached("SELECT number, address, holds_files FROM targets WHERE id = ?")?
        .query_row([id.as_str()], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, bool>(2)?))
        })
        .optional()?;
    if let Some((number, Some(now), held)) = &known
        && now == address
        && *held == holds_files
    {
        return Ok(*number);
    }
    let holder = connection
        .prepare_cached("SELECT number FROM targets WHERE address = ? AND id <> ?")?
        .query_row([address, id.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(number) = holder {
        if is_in_use(connection, number)? {
            return Err(NamespaceError::AddressTaken { address: address.into(), number });
        }
        connection.prepare_cached("UPDATE targets SET address = NULL WHERE number = ?")?.execute([number])?;
    }
    if let Some((number, ..)) = known {
        connection
            .prepare_cached("UPDATE targets SET address = ?, holds_files = ? WHERE number = ?")?
            .execute(params![address, holds_files, number])?;
        return Ok(number);
    }
    // Targets are never removed, so their count is the next number.
    let number: u32 =
        connection.prepare_cached("SELECT count(*) FROM targets")?.query_row([], |row| row.get(0))?;
    if number as usize >= MAX_CLUSTER_TARGETS {
        return Err(NamespaceError::TooMany {
            what: "targets in the cluster",
            limit: MAX_CLUSTER_TARGETS as u64,
        });
    }
    connection.prepare_cached("INSERT INTO targets VALUES (?, ?, ?, ?)")?.execute(params![
        number,
        id.as_str(),
        address,
        holds_files
    ])?;
    Ok(number)
}

/// Whether a file or a put in progress lies on the target. It may read all of them.
fn is_in_use(connection: &Connection, number: u32) -> Result<bool> {
    let mut statement = connection
        .prepare_cached("SELECT targets FROM files WHERE state = 1 OR (state = 0 AND lease > ?)")?;
    let mut rows = statement.query([clock::now()])?;
    while let Some(row) = rows.next()? {
        if numbers_from_bytes(row.get_ref(0)?.as_blob().map_err(wrong_type)?)?.contains(&number) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns `UnknownTarget` for the first target that is not in the cluster or has no address.
pub(crate) fn check_targets(connection: &Connection, numbers: &[u32]) -> Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM targets WHERE number = ? AND address IS NOT NULL")?;
    for &number in numbers {
        if !statement.exists([number])? {
            return Err(NamespaceError::UnknownTarget { number });
        }
    }
    Ok(())
}
