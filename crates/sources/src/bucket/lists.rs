//! Lists of buckets: one level of a folder, or all levels, page by page.

use std::cmp::Ordering;

use futures_util::{StreamExt, TryStreamExt, stream};
use gristmill_backend::{BackendError, Content, Entry, Key, Kind, MAX_LIST_PAGE, Page, Result};
use object_store::list::PaginatedListOptions;
use object_store::path::{Error as PathError, Path};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{Bucket, found};
use crate::retry::repeat;
use crate::store_error::explain_list;

/// Letters that names of files do not have.
const NO_PATH: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// Most pages of one list, with [`MAX_LIST_PAGE`] names each.
const MAX_PAGES: usize = 1 << 16;

/// Empty objects that are looked at at once, to tell files from markers of folders.
const LOOKS_AT_ONCE: usize = 16;

impl Bucket {
    /// The beginning of all keys in a folder.
    fn prefix(&self, folder: &Key) -> Result<String> {
        let url = self.root.below(folder)?;
        Ok(if url.key().is_root() { String::new() } else { format!("{}/", url.key()) })
    }

    /// One page of the answers of the store.
    async fn page(&self, prefix: &str, listing: PaginatedListOptions) -> Result<Answer> {
        let from = listing.offset.clone();
        let listed = self.store.list_paginated((!prefix.is_empty()).then_some(prefix), listing).await;
        let listed = match listed {
            Ok(listed) => listed,
            Err(object_store::Error::InvalidPath {
                source: PathError::EmptySegment { path } | PathError::BadSegment { path, .. },
            }) => return Ok(Answer::NoPath(path)),
            Err(error) => return Err(explain_list(&self.root, error)),
        };
        let below = |path: &Path| {
            let rest = path.as_ref().strip_prefix(prefix)?;
            (!rest.is_empty()).then(|| rest.to_owned())
        };
        let mut names = Vec::new();
        for meta in &listed.result.objects {
            let location = meta.location.as_ref();
            // The marker of a folder is shown without the '/' at its end, which is in front of its place.
            if meta.size > 0 && from.as_deref().is_some_and(|from| location <= from) {
                return Err(self.disorder("the object store lists names again that it listed before"));
            }
            if let Some(name) = below(&meta.location) {
                let url = self.root.with_key(Key::new(location)?);
                let content = Content::File(found(&url, meta)?);
                names.push(Listed { cursor: name.clone(), name, content });
            }
        }
        for folder in &listed.result.common_prefixes {
            if let Some(name) = below(folder) {
                names.push(Listed { cursor: format!("{name}/"), name, content: Content::Folder });
            }
        }
        // A list of all levels has no folders, and is in order. Markers would lose their place.
        if !listed.result.common_prefixes.is_empty() {
            names.sort_unstable_by(|one, other| one.cursor.cmp(&other.cursor));
        }
        let last = listed.result.objects.iter().map(|meta| meta.location.as_ref()).max().map(str::to_owned);
        let rows = listed.result.objects.len() + listed.result.common_prefixes.len();
        Ok(Answer::Page(StorePage { names, rows, last, token: listed.page_token }))
    }

    /// The page with one name that is no path here: it has an empty part, or a line break. The crate refuses pages with such a name.
    fn page_of_no_path(&self, prefix: &str, path: String) -> StorePage {
        let cursor = path.strip_prefix(prefix).unwrap_or(&path).to_owned();
        let name = utf8_percent_encode(&cursor, NO_PATH).to_string();
        let why = format!(
            "{}/{} is the name of an object that cannot be a path here; rename it",
            self.root.with_key(Key::ROOT).to_string().trim_end_matches('/'),
            path.escape_debug()
        );
        let names = vec![Listed { name, cursor, content: Content::Unreadable { why } }];
        StorePage { names, rows: 1, last: Some(path), token: None }
    }

    fn disorder(&self, why: &'static str) -> BackendError {
        let source = std::io::Error::new(std::io::ErrorKind::Unsupported, why);
        BackendError::Io { verb: "list", name: self.root.to_string(), source }
    }

    /// Gives the pages of a list to `each`, from a place on, until it returns false. It also gets whether the store said that more
    /// follows. Returns the number of rows that the store gave, with those of markers. Some servers cut lists without a token for the rest, so the end of a list is only believed if nothing comes
    /// after its last name.
    async fn pages(
        &self,
        prefix: &str,
        delimiter: Option<&'static str>,
        from: Option<String>,
        mut each: impl FnMut(Vec<Listed>, bool) -> Result<bool>,
    ) -> Result<usize> {
        let (mut offset, mut token, mut rows, mut max_keys) = (from, None, 0usize, MAX_LIST_PAGE);
        for _ in 0..MAX_PAGES {
            let listing = PaginatedListOptions {
                offset: offset.clone(),
                delimiter: delimiter.map(Into::into),
                max_keys: Some(max_keys),
                page_token: token.clone(),
                ..PaginatedListOptions::default()
            };
            let page = match repeat(async || self.page(prefix, listing.clone()).await).await? {
                Answer::Page(page) => page,
                // Shorter pages give the names before it.
                Answer::NoPath(_) if max_keys > 1 => {
                    max_keys /= 2;
                    continue;
                }
                Answer::NoPath(path) if offset.as_ref().is_some_and(|offset| path <= *offset) => {
                    return Err(self.disorder("the object store changes names in its lists"));
                }
                Answer::NoPath(path) => {
                    max_keys = MAX_LIST_PAGE;
                    self.page_of_no_path(prefix, path)
                }
            };
            let last_name = page.names.iter().map(|one| after(prefix, &one.cursor)).max();
            rows = rows.saturating_add(page.rows);
            token = page.token;
            if !each(page.names, token.is_some())? {
                return Ok(rows);
            }
            if token.is_none() {
                if page.rows == 0 {
                    return Ok(rows);
                }
                // A page may have the marker of the folder itself only.
                let last = last_name.max(page.last).max(offset.clone());
                // Its name ends with a '/', which is not shown, so it comes after its own shown name.
                offset = if last == offset { last.map(|last| format!("{last}/")) } else { last };
            }
        }
        Err(self.disorder("the object store gives too many pages for one list"))
    }

    /// Names of one level after a place, in the order of the store: folders count with a `/` at their end.
    pub(super) async fn level(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        let prefix = self.prefix(folder)?;
        let (mut entries, mut next) = (Vec::new(), None);
        let mut last = from.map(str::to_owned);
        let offset = from.map(|from| after(&prefix, from));
        let listed = self.pages(&prefix, Some("/"), offset, |names, more| {
            for one in names {
                match last.as_deref().map(|last| one.cursor.as_str().cmp(last)) {
                    // The folder of the place from which the list goes on.
                    Some(Ordering::Equal) => continue,
                    Some(Ordering::Less) => {
                        return Err(
                            self.disorder("the object store does not list names in the order of their bytes")
                        );
                    }
                    _ => {}
                }
                if entries.len() == limit {
                    next = last.take();
                    return Ok(false);
                }
                last = Some(one.cursor);
                entries.push(Entry { name: one.name, content: one.content });
            }
            if more && entries.len() == limit {
                next = last.take();
                return Ok(false);
            }
            Ok(true)
        });
        // A folder with its marker only is empty.
        if listed.await? == 0 && from.is_none() && !folder.is_root() {
            return Err(self.no_folder(folder).await);
        }
        Ok(Page { entries, next })
    }

    /// Files of all levels below a folder, after a place.
    pub(super) async fn below(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        let prefix = self.prefix(folder)?;
        let (mut entries, mut next) = (Vec::<Entry>::new(), None);
        let mut last = from.map(str::to_owned);
        let offset = from.map(|from| format!("{prefix}{from}"));
        let listed = self.pages(&prefix, None, offset, |names, more| {
            for one in names {
                if last.as_deref().is_some_and(|last| one.cursor.as_str() <= last) {
                    // The '/' at the end of a marker is not shown, so a marker seems to come late.
                    if is_empty(&one.content) {
                        continue;
                    }
                    let why = "the object store does not list names in the order of their bytes";
                    return Err(self.disorder(why));
                }
                entries.pop_if(|before| is_empty(&before.content) && lies_in(&one.name, &before.name));
                if entries.len() == limit {
                    next = last.take();
                    return Ok(false);
                }
                last = Some(one.cursor);
                entries.push(Entry { name: one.name, content: one.content });
            }
            if more && entries.len() == limit {
                next = last.take();
                return Ok(false);
            }
            Ok(true)
        });
        if listed.await? == 0 && from.is_none() && !folder.is_root() {
            return Err(self.no_folder(folder).await);
        }
        Ok(Page { entries: self.without_markers(folder, entries).await?, next })
    }

    /// Leaves out the empty objects that stand for empty folders. Their names end with a '/' that lists do not show, so no object has
    /// the name that is shown.
    async fn without_markers(&self, folder: &Key, entries: Vec<Entry>) -> Result<Vec<Entry>> {
        let looked = entries.into_iter().map(|entry| async {
            if !is_empty(&entry.content) {
                return Ok(Some(entry));
            }
            match self.found(&self.root.below(&folder.join(&entry.name)?)?).await {
                Ok(_) => Ok(Some(entry)),
                Err(BackendError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        });
        let looked: Vec<_> = looked.collect();
        let all: Vec<Option<Entry>> = stream::iter(looked).buffered(LOOKS_AT_ONCE).try_collect().await?;
        Ok(all.into_iter().flatten().collect())
    }

    async fn no_folder(&self, folder: &Key) -> BackendError {
        let url = match self.root.below(folder) {
            Ok(url) => url,
            Err(error) => return error,
        };
        let name = url.to_string();
        match self.found(&url).await {
            Ok(_) => BackendError::WrongKind { name, kind: Kind::File },
            Err(error) => error,
        }
    }
}

/// The answer of a store about a page.
enum Answer {
    Page(StorePage),
    /// A name of the page is no path.
    NoPath(String),
}

/// A page of the answers of a store.
struct StorePage {
    names: Vec<Listed>,
    /// Objects and folders of the answer, also those that are no names of the list.
    rows: usize,
    /// The last object of the answer.
    last: Option<String>,
    token: Option<String>,
}

/// Whether it is an empty file, or the marker of a folder.
fn is_empty(content: &Content) -> bool {
    matches!(content, Content::File(found) if found.length == 0)
}

/// Whether a file lies in a folder or below it.
fn lies_in(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

struct Listed {
    name: String,
    /// The place of the name in the order of the store.
    cursor: String,
    content: Content,
}

/// The place after a name of a list. A store would give a folder again, because its objects come after its own name.
fn after(prefix: &str, cursor: &str) -> String {
    if cursor.ends_with('/') { format!("{prefix}{cursor}{}", char::MAX) } else { format!("{prefix}{cursor}") }
}
