//! Rows of the table of files, checked as they are read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Row as SqlRow};

use crate::layout::check_layout;
use crate::targets::MAX_CLUSTER_TARGETS;
use crate::{
    Attempt, Committed, FileEntry, FileId, FilePath, Mode, NamespaceError, Principal, Result, clock, schema,
};

/// In the order that [`Row::read`] takes them.
pub(crate) const COLUMNS: &str = "n, id, state, path, who, mode, unit, first, targets, record, lease, \
     owner, length, versions, created, replaced, segments";

/// One put, in whatever state.
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
    done: Option<Done>,
}

/// What a commit adds.
struct Done {
    owner: Principal,
    length: u64,
    versions: Vec<u64>,
    created: SystemTime,
    replaced: Option<FileId>,
}

impl Row {
    pub(crate) fn read(row: &SqlRow<'_>) -> Result<Self> {
        let targets = numbers(row.get_ref(8)?.as_blob().map_err(wrong_type)?)?;
        let (unit, first) = (byte_count(row.get(6)?)?, row.get(7)?);
        let record = row.get::<_, Option<i64>>(9)?.map(byte_count).transpose()?;
        stored(check_layout(unit, first, &targets, record))?;
        let done = row.get::<_, Option<String>>(11)?;
        let done = done.map(|owner| Done::read(row, &owner, targets.len())).transpose()?;
        let state = row.get(2)?;
        if !matches!((state, &done), (schema::ATTEMPT, None) | (schema::LIVE, Some(_)) | (schema::GARBAGE, _))
        {
            return Err(NamespaceError::damaged("a put is in no state it could be in"));
        }
        Ok(Self {
            n: row.get(0)?,
            id: stored(row.get_ref(1)?.as_str().map_err(wrong_type)?.parse())?,
            state,
            path: FilePath::from_key(row.get_ref(3)?.as_str().map_err(wrong_type)?)?,
            who: stored(row.get_ref(4)?.as_str().map_err(wrong_type)?.parse())?,
            mode: row.get::<_, Option<u16>>(5)?.map(|bits| stored(Mode::new(bits))).transpose()?,
            unit,
            first,
            targets,
            record,
            segments: row.get(16)?,
            lease: row.get(10)?,
            done,
        })
    }

    /// The put of this id, if there is one that was not collected.
    pub(crate) fn find(connection: &Connection, id: &FileId) -> Result<Option<Self>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE id = ? AND state < {}", schema::HELD);
        one(connection, &sql, id.as_str())
    }

    /// The file at this path, if there is one.
    pub(crate) fn at(connection: &Connection, path: &FilePath) -> Result<Option<Self>> {
        one(connection, &format!("SELECT {COLUMNS} FROM files WHERE state = 1 AND path = ?"), &path.key())
    }

    /// In progress, with a lease that still holds.
    pub(crate) fn in_progress(&self) -> bool {
        self.state == schema::ATTEMPT && self.lease.is_some_and(|lease| lease > clock::now())
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.done.is_some()
    }

    pub(crate) fn entry(self) -> Result<FileEntry> {
        Ok(self.committed()?.file)
    }

    pub(crate) fn committed(self) -> Result<Committed> {
        let (Some(done), Some(mode)) = (self.done, self.mode) else {
            return Err(NamespaceError::damaged(format!("file {} has no owner or no mode", self.id)));
        };
        let file = FileEntry {
            id: self.id,
            path: self.path,
            owner: done.owner,
            mode,
            length: done.length,
            unit: self.unit,
            first: self.first,
            targets: self.targets,
            record: self.record,
            segments: self.segments,
            versions: done.versions,
            created: done.created,
        };
        Ok(Committed { file, replaced: done.replaced })
    }

    pub(crate) fn attempt(self) -> Attempt {
        let committed = self.is_committed();
        let Self { path, who, unit, first, targets, record, segments, .. } = self;
        Attempt { path, who, unit, first, targets, record, segments, committed }
    }
}

impl Done {
    fn read(row: &SqlRow<'_>, owner: &str, targets: usize) -> Result<Self> {
        let versions = row.get_ref(13)?.as_blob().map_err(wrong_type)?;
        let (versions, rest) = versions.as_chunks::<8>();
        if !rest.is_empty() || versions.len() != targets {
            return Err(NamespaceError::damaged("a file has not one version for each target"));
        }
        let replaced = row.get::<_, Option<String>>(15)?;
        Ok(Self {
            owner: stored(owner.parse())?,
            length: byte_count(row.get(12)?)?,
            versions: versions.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
            created: from_nanos(row.get(14)?),
            replaced: replaced.map(|id| stored(id.parse())).transpose()?,
        })
    }
}

fn one(connection: &Connection, sql: &str, key: &str) -> Result<Option<Row>> {
    connection.prepare_cached(sql)?.query_row([key], |row| Ok(Row::read(row))).optional()?.transpose()
}

fn byte_count(value: i64) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| NamespaceError::damaged(format!("it holds {value} for a number of bytes")))
}

/// Target numbers, 4 bytes each, least significant first.
pub(crate) fn number_bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Versions, 8 bytes each, least significant first.
pub(crate) fn version_bytes(versions: &[u64]) -> Vec<u8> {
    versions.iter().flat_map(|version| version.to_le_bytes()).collect()
}

/// The inverse of [`number_bytes`].
pub(crate) fn numbers(bytes: &[u8]) -> Result<Vec<u32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || !(1..=MAX_CLUSTER_TARGETS).contains(&numbers.len()) {
        return Err(NamespaceError::damaged("a file has no valid list of targets"));
    }
    Ok(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
}

/// A stored value that breaks its rule is damage and no fault of the caller.
pub(crate) fn stored<T>(value: Result<T>) -> Result<T> {
    value.map_err(|error| match error {
        NamespaceError::Invalid { what, .. } => {
            NamespaceError::damaged(format!("it holds a value where {what}"))
        }
        other => other,
    })
}

pub(crate) fn wrong_type(error: rusqlite::types::FromSqlError) -> NamespaceError {
    NamespaceError::damaged(format!("a column has the wrong type ({error})"))
}

/// Nanoseconds since 1970, held to what fits.
pub(crate) fn to_nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn from_nanos(nanos: i64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanos.max(0).unsigned_abs())).unwrap_or(UNIX_EPOCH)
}
