//! Names that other programs have for what a kernel does, for the message about a name that no kernel has.

/// A kernel, and what to know of it: the end of a sentence, or nothing.
type KernelAndNote = (&'static str, &'static str);

const ALSO_STD: &str = ", whose answer has the standard deviation too";
const ALSO_INDEX: &str = ", whose answer has the index too";
const SHARES: &str = ", which takes shares from 0 to 1";

/// Names in other programs, and the kernels that do the same here.
const OTHER_NAMES: &[(&[&str], &[KernelAndNote])] = &[
    (&["avg", "average"], &[("mean", "")]),
    (&["percentile", "percentiles"], &[("quantile", SHARES)]),
    (&["std", "stddev", "stdev"], &[("var", ALSO_STD)]),
    (&["variance"], &[("var", "")]),
    (&["length", "len", "size", "nrows"], &[("count", "")]),
    (&["distinct", "uniq", "nunique", "value_counts"], &[("unique", "")]),
    (&["match", "search"], &[("grep", "")]),
    (&["filter", "where", "select"], &[("lookup", " for numbers"), ("grep", " for lines of text")]),
    (&["minimum"], &[("min", "")]),
    (&["maximum"], &[("max", "")]),
    (&["argmin"], &[("min", ALSO_INDEX)]),
    (&["argmax"], &[("max", ALSO_INDEX)]),
    (&["head"], &[("first", "")]),
    (&["tail"], &[("last", "")]),
    (&["hist"], &[("histogram", "")]),
    (&["total"], &[("sum", "")]),
];

/// The kernels that do what `name` does in other programs, in words, whatever the case of its letters.
/// ```
/// use gristmill_kernel::catalog::kernels_for_other_name;
///
/// assert_eq!(kernels_for_other_name("AVG").as_deref(), Some("'mean'"));
/// assert_eq!(kernels_for_other_name("mean"), None);
/// ```
pub fn kernels_for_other_name(name: &str) -> Option<String> {
    let called = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    let (_, kernels) = OTHER_NAMES.iter().find(|(names, _)| called(names))?;
    let words: Vec<String> = kernels.iter().map(|(kernel, note)| format!("'{kernel}'{note}")).collect();
    Some(words.join(" or "))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::catalog::find;

    #[test]
    fn every_other_name_leads_to_kernels_and_is_none() {
        let mut seen = HashSet::new();
        for (names, kernels) in OTHER_NAMES {
            for name in *names {
                assert!(find(name).is_err(), "{name} is a kernel");
                assert!(seen.insert(name), "{name} is there twice");
            }
            assert!(!kernels.is_empty());
            for (kernel, _) in *kernels {
                assert!(find(kernel).is_ok(), "there is no kernel {kernel}");
            }
        }
    }

    #[test]
    fn the_message_about_an_unknown_kernel_names_them() {
        let said = |name: &str| find(name).unwrap_err().to_string();
        assert_eq!(said("avg"), "there is no kernel 'avg'; did you mean 'mean'?");
        assert!(said("Percentile").ends_with("did you mean 'quantile', which takes shares from 0 to 1?"));
        assert!(said("filter").ends_with("did you mean 'lookup' for numbers or 'grep' for lines of text?"));
        assert!(said("meen").ends_with("did you mean 'mean'?"));
        assert!(said("frobnicate").ends_with("'gristmill kernels' lists them"));
    }
}
