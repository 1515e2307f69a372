//! Files to which programs append: where their last whole record ends.

use crate::{BackendError, Result};

/// Most bytes at the end of a file in which the end of its last whole line is looked for.
pub const MAX_UNFINISHED_LINE: u64 = 64 << 20;

/// Bytes that are read at once while it is looked for.
const STEP: u64 = 1 << 20;

/// The records of a file that grows. The last one may be incomplete, and only whole ones count.
///
/// ```
/// use gristmill_backend::{WholeRecords, open_growing_file};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("log");
/// std::fs::write(&path, "one\ntwo\nthr")?;
/// assert_eq!(open_growing_file(&path, WholeRecords::Lines)?.found().length, 8);
/// assert_eq!(open_growing_file(&path, WholeRecords::Fixed { header: 2, bytes: 4 })?.found().length, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeRecords {
    /// Records of this many bytes after a header.
    Fixed {
        /// Bytes before the first record.
        header: u64,
        /// Bytes of a record.
        bytes: u64,
    },
    /// Lines, each with its newline.
    Lines,
}

impl WholeRecords {
    /// Records of this many bytes after a header. `None`: lines.
    pub fn new(header: u64, bytes: Option<u64>) -> WholeRecords {
        bytes.map_or(WholeRecords::Lines, |bytes| WholeRecords::Fixed { header, bytes })
    }

    /// The end of the last whole record of a file with this name and `length` bytes, of which `read` fills a buffer from an offset.
    ///
    /// # Errors
    /// The error is [`BackendError::Io`] if there is no end of a line in the last [`MAX_UNFINISHED_LINE`] bytes. It also fails as `read`
    /// does.
    pub fn end(
        self,
        name: impl Fn() -> String,
        length: u64,
        read: impl Fn(u64, &mut [u8]) -> Result<()>,
    ) -> Result<u64> {
        match self {
            WholeRecords::Fixed { header, bytes } => {
                Ok(length - length.saturating_sub(header) % bytes.max(1))
            }
            WholeRecords::Lines => {
                let (least, mut end, mut block) =
                    (length.saturating_sub(MAX_UNFINISHED_LINE), length, Vec::new());
                while end > least {
                    let start = end.saturating_sub(STEP).max(least);
                    block.resize((end - start) as usize, 0);
                    read(start, &mut block)?;
                    if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
                        return Ok(start + at as u64 + 1);
                    }
                    end = start;
                }
                if least == 0 {
                    return Ok(0);
                }
                let why = format!("its last {} MiB have no end of a line", MAX_UNFINISHED_LINE >> 20);
                Err(BackendError::Io { verb: "read", name: name(), source: std::io::Error::other(why) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_last_whole_line_ends_with_the_last_newline() {
        let end = |text: &[u8]| {
            let read = |start: u64, out: &mut [u8]| {
                out.copy_from_slice(&text[start as usize..start as usize + out.len()]);
                Ok(())
            };
            WholeRecords::Lines.end(|| "log".to_owned(), text.len() as u64, read)
        };
        let found = |text: &[u8]| end(text).unwrap();
        assert_eq!(
            [found(b""), found(b"a"), found(b"\n"), found(b"a\nb"), found(b"a\nb\n")],
            [0, 0, 1, 2, 4]
        );
        for tail in [STEP - 1, STEP, STEP + 1, 3 * STEP, MAX_UNFINISHED_LINE - 1] {
            let text = [b"first\n".to_vec(), vec![b'x'; tail as usize]].concat();
            assert_eq!(found(&text), 6, "{tail}");
        }
        // Half a line is never taken for a whole one.
        let error = end(&[b"first\n".to_vec(), vec![b'x'; MAX_UNFINISHED_LINE as usize]].concat());
        assert!(error.is_err_and(|error| error.to_string().contains("no end of a line")));
    }
}
