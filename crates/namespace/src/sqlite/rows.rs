//! Rows of the table of files, checked as they are read.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Row as SqlRow};

use super::schema;
use crate::checks::check_layout;
use crate::clock::from_nanos;
use crate::{
    Attempt, CommitOutcome, FileEntry, FileId, FilePath, MAX_CLUSTER_TARGETS, Mode, NamespaceError,
    Principal, Result, clock,
};

/// The columns, in the order of [`Row::read`].
pub(crate) const COLUMNS: &str = "n, id, state, path, who, mode, unit, first, targets, record, lease, \
     owner, length, versions, created, replaced, segments";

/// One put, in any state.
pub(crate) struct Row {
    pub(crate) n: i64,
    pub(crate) id: FileId,
    pub(crate) state: i64,
    pub(crate) path: FilePath,
    pub(crate) who: Principal,
    pub(crate) mode: Option<Mode>,
    unit: u64,
    first: u32,
    pub(crate) targets: Vec<u32>,
    record: Option<u64>,
    segments: bool,
    lease: Option<i64>,
    commit: Option<CommitColumns>,
}

/// The columns that a commit fills.
struct CommitColumns {
    owner: Principal,
    length: u64,
    versions: Vec<u64>,
    created: SystemTime,
    replaced: Option<FileId>,
}

impl Row {
    pub(crate) fn read(row: &SqlRow<'_>) -> Result<Self> {
        let targets = numbers_from_bytes(row.get_ref(8)?.as_blob().map_err(wrong_type)?)?;
        let (unit, first) = (byte_count(row.get(6)?)?, row.get(7)?);
        let record = row.get::<_, Option<i64>>(9)?.map(byte_count).transpose()?;
        stored_value(check_layout(unit, first, &targets, record))?;
        let commit = row.get::<_, Option<String>>(11)?;
        let commit = commit.map(|owner| CommitColumns::read(row, &owner, targets.len())).transpose()?;
        let state = row.get(2)?;
        if !matches!(
            (state, &commit),
            (schema::ATTEMPT, None) | (schema::LIVE, Some(_)) | (schema::GARBAGE, _)
        ) {
            return Err(NamespaceError::damaged("a put has an impossible state"));
        }
        Ok(Self {
            n: row.get(0)?,
            id: stored_value(row.get_ref(1)?.as_str().map_err(wrong_type)?.parse())?,
            state,
            path: FilePath::from_key(row.get_ref(3)?.as_str().map_err(wrong_type)?)?,
            who: stored_value(row.get_ref(4)?.as_str().map_err(wrong_type)?.parse())?,
            mode: row.get::<_, Option<u16>>(5)?.map(|bits| stored_value(Mode::new(bits))).transpose()?,
            unit,
            first,
            targets,
            record,
            segments: row.get(16)?,
            lease: row.get(10)?,
            commit,
        })
    }

    /// Returns the put with this id, if it is not collected.
    pub(crate) fn find(connection: &Connection, id: &FileId) -> Result<Option<Self>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE id = ? AND state < {}", schema::HELD);
        query_one(connection, &sql, id.as_str())
    }

    /// Returns the file at this path, if there is one.
    pub(crate) fn at(connection: &Connection, path: &FilePath) -> Result<Option<Self>> {
        query_one(
            connection,
            &format!("SELECT {COLUMNS} FROM files WHERE state = 1 AND path = ?"),
            &path.key(),
        )
    }

    /// Whether the put is in progress and its lease has not expired.
    pub(crate) fn in_progress(&self) -> bool {
        self.state == schema::ATTEMPT && self.lease.is_some_and(|lease| lease > clock::now())
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.commit.is_some()
    }

    pub(crate) fn entry(self) -> Result<FileEntry> {
        Ok(self.committed()?.file)
    }

    pub(crate) fn committed(self) -> Result<CommitOutcome> {
        let (Some(commit), Some(mode)) = (self.commit, self.mode) else {
            return Err(NamespaceError::damaged(format!("file {} has no owner or no mode", self.id)));
        };
        let file = FileEntry {
            id: self.id,
            path: self.path,
            owner: commit.owner,
            mode,
            length: commit.length,
            unit: self.unit,
            first: self.first,
            targets: self.targets,
            record: self.record,
            segments: self.segments,
            versions: commit.versions,
            created: commit.created,
        };
        Ok(CommitOutcome { file, replaced: commit.replaced })
    }

    pub(crate) fn attempt(self) -> Attempt {
        let committed = self.is_committed();
        let Self { path, who, unit, first, targets, record, segments, .. } = self;
        Attempt { path, who, unit, first, targets, record, segments, committed }
    }
}

impl CommitColumns {
    fn read(row: &SqlRow<'_>, owner: &str, targets: usize) -> Result<Self> {
        let versions = row.get_ref(13)?.as_blob().map_err(wrong_type)?;
        let (versions, rest) = versions.as_chunks::<8>();
        if !rest.is_empty() || versions.len() != targets {
            return Err(NamespaceError::damaged("a file does not have one version for each target"));
        }
        let replaced = row.get::<_, Option<String>>(15)?;
        Ok(Self {
            owner: stored_value(owner.parse())?,
            length: byte_count(row.get(12)?)?,
            versions: versions.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
            created: from_nanos(row.get(14)?),
            replaced: replaced.map(|id| stored_value(id.parse())).transpose()?,
        })
    }
}

fn query_one(connection: &Connection, sql: &str, key: &str) -> Result<Option<Row>> {
    connection.prepare_cached(sql)?.query_row([key], |row| Ok(Row::read(row))).optional()?.transpose()
}

fn byte_count(value: i64) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| NamespaceError::damaged(format!("it contains {value} as a number of bytes")))
}

/// Encodes target numbers, 4 bytes each, little-endian.
pub(crate) fn number_bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Encodes versions, 8 bytes each, little-endian.
pub(crate) fn version_bytes(versions: &[u64]) -> Vec<u8> {
    versions.iter().flat_map(|version| version.to_le_bytes()).collect()
}

/// The inverse of [`number_bytes`].
pub(crate) fn numbers_from_bytes(bytes: &[u8]) -> Result<Vec<u32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || !(1..=MAX_CLUSTER_TARGETS).contains(&numbers.len()) {
        return Err(NamespaceError::damaged("a file has no valid list of targets"));
    }
    Ok(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
}

/// Turns an invalid stored value into damage, because it is not a fault of the caller.
pub(crate) fn stored_value<T>(value: Result<T>) -> Result<T> {
    value.map_err(|error| match error {
        NamespaceError::Invalid { what, .. } => {
            NamespaceError::damaged(format!("it contains an invalid value: {what}"))
        }
        other => other,
    })
}

pub(crate) fn wrong_type(error: rusqlite::types::FromSqlError) -> NamespaceError {
    NamespaceError::damaged(format!("a column has the wrong type ({error})"))
}
