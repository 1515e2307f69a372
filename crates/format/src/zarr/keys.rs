//! Names of chunk files.

/// The encoding of a chunk's grid coordinates in its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Whether keys begin with `c`, which is the default of version 3.
    pub prefixed: bool,
    /// The separator: `.` or `/`.
    pub separator: char,
}

impl Keys {
    /// Returns the coordinates in a key below the array's folder, or `None` for other files.
    pub fn coordinates(&self, key: &str, axes: usize) -> Option<Vec<u64>> {
        let rest = match (self.prefixed, axes) {
            (true, 0) => return (key == "c").then(Vec::new),
            (false, 0) => return (key == "0").then(Vec::new),
            (true, _) => key.strip_prefix('c')?.strip_prefix(self.separator)?,
            (false, _) => key,
        };
        let parts: Option<Vec<u64>> = rest.split(self.separator).map(coordinate).collect();
        parts.filter(|parts| parts.len() == axes)
    }
}

/// Reads a number as Zarr writes it: digits without leading zeros.
fn coordinate(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_both_versions() {
        let v3 = Keys { prefixed: true, separator: '/' };
        assert_eq!(v3.coordinates("c/1/20", 2), Some(vec![1, 20]));
        assert_eq!(v3.coordinates("c", 0), Some(vec![]));
        let v2 = Keys { prefixed: false, separator: '.' };
        assert_eq!(v2.coordinates("1.20", 2), Some(vec![1, 20]));
        assert_eq!(v2.coordinates("0", 0), Some(vec![]));
        for other in ["", ".zarray", "1", "1.2.3", "1.02", "1.+2", "1.-2", "c.1.2", "1.99999999999999999999"]
        {
            assert_eq!(v2.coordinates(other, 2), None, "{other}");
        }
    }
}
