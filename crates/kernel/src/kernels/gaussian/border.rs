//! The continuation of an image beyond its border, with SciPy's names.

/// The values beyond the border of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Border {
    /// `d c b a | a b c d | d c b a`
    Reflect,
    /// `d c b | a b c d | c b a`
    Mirror,
    /// `a a a a | a b c d | d d d d`
    Nearest,
    /// `a b c d | a b c d | a b c d`
    Wrap,
    /// One value everywhere.
    Constant(f64),
}

impl Border {
    /// The place among `n` (at least 1) whose value is used at `at`, which may lie beyond the border. `None` for the
    /// constant.
    pub fn place(self, at: i64, n: i64) -> Option<i64> {
        if (0..n).contains(&at) {
            return Some(at);
        }
        Some(match self {
            Border::Constant(_) => return None,
            Border::Nearest => at.clamp(0, n - 1),
            Border::Wrap => at.rem_euclid(n),
            Border::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
            Border::Mirror if n == 1 => 0,
            Border::Mirror => {
                let at = at.rem_euclid(2 * n - 2);
                at.min(2 * n - 2 - at)
            }
        })
    }

    /// The constant; 0 for the other modes.
    pub fn constant(self) -> f64 {
        match self {
            Border::Constant(value) => value,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(border: Border, n: i64) -> String {
        let letter = |at| border.place(at, n).map_or('.', |at| (b'a' + at as u8) as char);
        (-5..n + 5).map(letter).collect()
    }

    #[test]
    fn borders_are_those_of_scipy() {
        assert_eq!(pattern(Border::Reflect, 4), "ddcbaabcddcbaa");
        assert_eq!(pattern(Border::Mirror, 4), "bcdcbabcdcbabc");
        assert_eq!(pattern(Border::Nearest, 4), "aaaaaabcdddddd");
        assert_eq!(pattern(Border::Wrap, 4), "dabcdabcdabcda");
        assert_eq!(pattern(Border::Constant(7.0), 4), ".....abcd.....");
        assert_eq!(pattern(Border::Reflect, 1), "a".repeat(11));
        assert_eq!(pattern(Border::Mirror, 1), "a".repeat(11));
    }
}
