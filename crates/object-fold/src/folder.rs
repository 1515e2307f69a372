//! Stores that fold where their bytes lie.

use crate::{FoldOrder, Folded, Span};

/// Whether the storage behind a store folds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoldPolicy {
    /// Where it can, and as long as it is fast.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Always. It is an error if it cannot.
    Always,
}

/// Why a store folds nothing. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FoldRefusal(pub String);

/// A store whose storage devices or daemons fold.
pub trait ObjectFolder: Send + Sync {
    /// Folds spans of the object with this name, which are in the order of their records, and returns after each device was asked at most once. Records that
    /// are missing in the answer were not folded. They may be asked for again if the time was over, and must be read otherwise.
    ///
    /// # Errors
    /// It fails if the devices refuse all such folds.
    fn fold(&self, object: &str, order: &FoldOrder, spans: &[Span]) -> Result<Folded, FoldRefusal>;

    /// Whether the devices refused such folds lately, so that they are not asked now.
    fn refuses(&self) -> bool {
        false
    }
}
