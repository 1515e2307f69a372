//! Files to which programs append: where their last whole record ends.

use crate::Result;

/// Most bytes at the end of a file in which the end of its last whole line is looked for.
const MAX_LAST_LINE: u64 = 4 << 20;

/// Bytes that are read at once while it is looked for.
const STEP: u64 = 64 << 10;

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
    /// The end of the last whole record of a file with `length` bytes, of which `read` fills a buffer from an offset. Of lines that are
    /// longer than 4 MiB it is the length.
    pub(crate) fn end(self, length: u64, read: impl Fn(u64, &mut [u8]) -> Result<()>) -> Result<u64> {
        match self {
            WholeRecords::Fixed { header, bytes } => {
                Ok(length - length.saturating_sub(header) % bytes.max(1))
            }
            WholeRecords::Lines => {
                let (least, mut end, mut block) = (length.saturating_sub(MAX_LAST_LINE), length, Vec::new());
                while end > least {
                    let start = end.saturating_sub(STEP).max(least);
                    block.resize((end - start) as usize, 0);
                    read(start, &mut block)?;
                    if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
                        return Ok(start + at as u64 + 1);
                    }
                    end = start;
                }
                Ok(if least == 0 { 0 } else { length })
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
            WholeRecords::Lines.end(text.len() as u64, read).unwrap()
        };
        assert_eq!([end(b""), end(b"a"), end(b"\n"), end(b"a\nb"), end(b"a\nb\n")], [0, 0, 1, 2, 4]);
        for tail in [STEP - 1, STEP, STEP + 1, 3 * STEP, MAX_LAST_LINE - 1] {
            let text = [b"first\n".to_vec(), vec![b'x'; tail as usize]].concat();
            assert_eq!(end(&text), 6, "{tail}");
        }
        let long = vec![b'x'; MAX_LAST_LINE as usize + 1];
        assert_eq!(end(&long), long.len() as u64);
    }
}
