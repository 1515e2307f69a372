//! Pages of folders whose storage does not sort its names.

use std::collections::BTreeSet;

use crate::{Entry, Page, Result};

/// The first names of a folder after a name, in the order of their bytes. It keeps no more than it may.
///
/// ```
/// use gristmill_backend::FirstNames;
///
/// let mut names = FirstNames::new(Some("a"), 2);
/// ["d", "a", "c", "b"].iter().for_each(|name| names.offer(name));
/// assert_eq!(names.found().into_iter().collect::<Vec<_>>(), ["b", "c"]);
/// ```
#[derive(Debug)]
pub struct FirstNames<'a> {
    after: Option<&'a str>,
    limit: usize,
    found: BTreeSet<String>,
}

impl<'a> FirstNames<'a> {
    /// At most `limit` names after `after`.
    pub fn new(after: Option<&'a str>, limit: usize) -> FirstNames<'a> {
        FirstNames { after, limit, found: BTreeSet::new() }
    }

    /// Takes a name of the folder. `.` and `..` are left out.
    pub fn offer(&mut self, name: &str) {
        let is_early = self.found.len() < self.limit
            || self.found.last().is_some_and(|last: &String| name < last.as_str());
        if matches!(name, "." | "..") || !is_early || self.after.is_some_and(|after| name <= after) {
            return;
        }
        self.found.insert(name.to_owned());
        if self.found.len() > self.limit {
            self.found.pop_last();
        }
    }

    /// The names.
    pub fn found(self) -> BTreeSet<String> {
        self.found
    }
}

/// A page of a folder. `look` gives entries after a name, and the last name that it looked up if there may be more.
///
/// # Errors
/// It fails as `look` does.
pub fn page_of_names(
    from: Option<&str>,
    look: impl Fn(Option<&str>) -> Result<(Vec<Entry>, Option<String>)>,
) -> Result<Page> {
    let mut from = from.map(str::to_owned);
    loop {
        let (entries, next) = look(from.as_deref())?;
        // All of them may have been removed meanwhile.
        if !entries.is_empty() || next.is_none() {
            return Ok(Page { entries, next });
        }
        from = next;
    }
}
