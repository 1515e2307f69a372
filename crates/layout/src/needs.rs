//! What a stretch of owned records lacks on its owner.

use std::ops::Range;

use crate::{FixedRecords, Layout, LayoutError, MAX_NEEDS, TargetIndex};

/// Bytes that an owner must pull from another target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Need {
    /// The target that holds them.
    pub target: TargetIndex,
    /// The bytes of the file; at least one. Where they lie in its object the holder finds with
    /// [`Layout::runs`].
    pub file: Range<u64>,
}

/// What `owner` lacks of `owned_records` and of the `halo` records on each side of them: in file order, cut
/// where the holder changes.
///
/// The halo is cut at the ends of `within` (records), usually the selection. Stretches of the same owner that
/// lie closer than the halo have needs in common; [`batches`](crate::batches()) asks for those bytes once.
///
/// # Errors
/// [`LayoutError::TooManyNeeds`] past [`MAX_NEEDS`] pieces, [`LayoutError::RecordsPastEnd`].
pub fn needs(
    layout: &Layout,
    records: &FixedRecords,
    owner: TargetIndex,
    owned_records: Range<u64>,
    halo: u64,
    within: Range<u64>,
) -> Result<Vec<Need>, LayoutError> {
    layout.check_records(records)?;
    let mut list: Vec<Need> = Vec::new();
    for extent in layout.extents_for(owner, records.bytes(with_halo(records, owned_records, halo, within))) {
        if extent.target == owner {
            continue;
        }
        let full = list.len() == MAX_NEEDS;
        match list.last_mut() {
            Some(last) if last.target == extent.target && last.file.end == extent.file.start => {
                last.file.end = extent.file.end;
            }
            _ if full => return Err(LayoutError::TooManyNeeds),
            _ => list.push(Need { target: extent.target, file: extent.file }),
        }
    }
    Ok(list)
}

/// The records and `halo` more on each side, as far as `within` goes. The records themselves are never cut,
/// and no records have no halo.
pub(crate) fn with_halo(
    records: &FixedRecords,
    middle: Range<u64>,
    halo: u64,
    within: Range<u64>,
) -> Range<u64> {
    let middle = records.cut(middle);
    if middle.is_empty() {
        return middle;
    }
    let start = middle.start.saturating_sub(halo).max(within.start).min(middle.start);
    let end = middle.end.saturating_add(halo).min(within.end).max(middle.end);
    records.cut(start..end)
}
