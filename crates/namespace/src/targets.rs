//! The storage targets of the cluster.

use rusqlite::{Connection, OptionalExtension, params};

use crate::rows::{numbers, stored, wrong_type};
use crate::{Namespace, NamespaceError, Result, TargetId, TargetRecord, clock};

/// Most targets a cluster may have, and so a file may lie on.
pub const MAX_CLUSTER_TARGETS: usize = 1_024;
/// Longest address of a storage node, in bytes.
pub const MAX_ADDRESS_BYTES: usize = 255;

impl Namespace {
    /// Takes a target into the cluster, or notes that one of the cluster now has this address. Returns its
    /// number: 0 for the first that ever joined, then 1, and so on, the same each time. To join again without
    /// change writes nothing.
    ///
    /// If another target has the address, it moves over only while no file and no put in progress lies on
    /// the other, which then has none until it joins again. Otherwise a target that was given a wrong address
    /// by mistake would cut off files that can be read.
    ///
    /// # Errors
    /// [`AddressTaken`](NamespaceError::AddressTaken), [`TooMany`](NamespaceError::TooMany) targets,
    /// [`Invalid`](NamespaceError::Invalid) for an address that is empty, longer than
    /// [`MAX_ADDRESS_BYTES`] or holds spaces or control characters, or a failure of the system.
    pub fn join(&self, id: &TargetId, address: &str) -> Result<u32> {
        let strange = |c: char| c.is_whitespace() || c.is_control();
        if address.is_empty() || address.len() > MAX_ADDRESS_BYTES || address.contains(strange) {
            return Err(NamespaceError::invalid(
                format!("{:?} is no address of a storage node", crate::error::start(address)),
                "use 1 to 255 bytes without spaces, such as host:port",
            ));
        }
        let (id, address) = (id.clone(), address.to_owned());
        self.writer.call(move |connection| join(connection, &id, &address))
    }

    /// All targets that ever joined, by number.
    ///
    /// # Errors
    /// A failure of the system.
    pub fn targets(&self) -> Result<Vec<TargetRecord>> {
        self.readers.with(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT number, id, address FROM targets ORDER BY number")?;
            let mut rows = statement.query([])?;
            let mut targets = Vec::new();
            while let Some(row) = rows.next()? {
                targets.push(TargetRecord {
                    number: row.get(0)?,
                    id: stored(row.get_ref(1)?.as_str().map_err(wrong_type)?.parse())?,
                    address: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
                });
            }
            Ok(targets)
        })
    }
}

fn join(connection: &Connection, id: &TargetId, address: &str) -> Result<u32> {
    let known = connection
        .prepare_cached("SELECT number, address FROM targets WHERE id = ?")?
        .query_row([id.as_str()], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, Option<String>>(1)?)))
        .optional()?;
    if let Some((number, Some(now))) = &known
        && now == address
    {
        return Ok(*number);
    }
    let holder = connection
        .prepare_cached("SELECT number FROM targets WHERE address = ?")?
        .query_row([address], |row| row.get(0))
        .optional()?;
    if let Some(number) = holder {
        if is_in_use(connection, number)? {
            return Err(NamespaceError::AddressTaken { address: address.into(), number });
        }
        connection.prepare_cached("UPDATE targets SET address = NULL WHERE number = ?")?.execute([number])?;
    }
    if let Some((number, _)) = known {
        connection
            .prepare_cached("UPDATE targets SET address = ? WHERE number = ?")?
            .execute(params![address, number])?;
        return Ok(number);
    }
    // Targets are never forgotten, so their count is the next number.
    let number: u32 =
        connection.prepare_cached("SELECT count(*) FROM targets")?.query_row([], |row| row.get(0))?;
    if number as usize >= MAX_CLUSTER_TARGETS {
        return Err(NamespaceError::TooMany {
            what: "targets in the cluster",
            limit: MAX_CLUSTER_TARGETS as u64,
        });
    }
    connection.prepare_cached("INSERT INTO targets VALUES (?, ?, ?)")?.execute(params![
        number,
        id.as_str(),
        address
    ])?;
    Ok(number)
}

/// Whether a file or a put in progress lies on the target. Looks at all of them if none does.
fn is_in_use(connection: &Connection, number: u32) -> Result<bool> {
    let mut statement = connection
        .prepare_cached("SELECT targets FROM files WHERE state = 1 OR (state = 0 AND lease > ?)")?;
    let mut rows = statement.query([clock::now()])?;
    while let Some(row) = rows.next()? {
        if numbers(row.get_ref(0)?.as_blob().map_err(wrong_type)?)?.contains(&number) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `UnknownTarget` for the first that is not in the cluster or has no address.
pub(crate) fn check_known(connection: &Connection, numbers: &[u32]) -> Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM targets WHERE number = ? AND address IS NOT NULL")?;
    for &number in numbers {
        if !statement.exists([number])? {
            return Err(NamespaceError::UnknownTarget { number });
        }
    }
    Ok(())
}
