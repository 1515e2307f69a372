//! The ports that nodes had when they were started last, so that they have the same again: grants that are out, and what the
//! entry node knows of a target, name them.

use std::path::Path;

use gristmill_store::write_atomic;

/// The file in `--dir`: a port a line, those of the nodes in their order.
const FILE: &str = "up.ports";

/// Longest such file that is read, in bytes: more than all nodes take.
const MAX_BYTES: u64 = 4096;

/// The ports of the nodes, as far as they are known. They are a preference: whatever cannot be read is none.
pub fn read(dir: &Path) -> Vec<u16> {
    let path = dir.join(FILE);
    match std::fs::metadata(&path) {
        Ok(meta) if meta.is_file() && meta.len() <= MAX_BYTES => {}
        _ => return Vec::new(),
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    text.lines().map_while(|line| line.parse().ok()).collect()
}

/// Remembers the ports of the nodes. Where that fails they have others next time, and nothing else is lost.
pub fn write(dir: &Path, ports: impl Iterator<Item = u16>) {
    let text: String = ports.map(|port| format!("{port}\n")).collect();
    let _ = write_atomic(&dir.join(FILE), text.as_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn ports_are_read_as_they_were_written_and_nonsense_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).is_empty());
        write(dir.path(), [7440, 1, 65535].into_iter());
        assert_eq!(read(dir.path()), [7440, 1, 65535]);
        std::fs::write(dir.path().join(FILE), "7440\n65536\n12\n").unwrap();
        assert_eq!(read(dir.path()), [7440]);
        std::fs::write(dir.path().join(FILE), "1\n".repeat(5000)).unwrap();
        assert!(read(dir.path()).is_empty());
    }
}
