//! Lists of buckets: one level of a folder, or all levels, page by page.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use gristmill_backend::{BackendError, Content, Entry, Key, Kind, MAX_LIST_PAGE, Page, Result};
use object_store::list::PaginatedListOptions;
use object_store::path::{Error as PathError, Path};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{Bucket, found};
use crate::Scheme;
use crate::retry::repeat;
use crate::store_error::explain_list;

/// Letters that names of files do not have.
const NO_PATH: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// Most pages of one list, with [`MAX_LIST_PAGE`] names each.
const MAX_PAGES: usize = 1 << 16;

/// How much longer each page is than the one before, after a short one.
const PAGE_GROWTH: usize = 8;

/// Objects that are looked at at once, to tell files from markers of folders.
const LOOKS_AT_ONCE: usize = 16;

impl Bucket {
    /// The beginning of all keys in a folder.
    fn prefix(&self, folder: &Key) -> Result<String> {
        let url = self.root.below(folder)?;
        Ok(if url.key().is_root() { String::new() } else { format!("{}/", url.key()) })
    }

    /// One page of the answers of the store.
    async fn page(&self, prefix: &str, listing: PaginatedListOptions) -> Result<Answer> {
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
            if let Some(name) = below(&meta.location) {
                let url = self.root.with_key(Key::new(meta.location.as_ref())?);
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
        let name = match &*cursor {
            "." | ".." => cursor.replace('.', "%2E"),
            cursor => utf8_percent_encode(cursor, NO_PATH).to_string(),
        };
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
    /// follows. Returns the number of rows that the store gave, with those of markers. Some servers of S3 cut lists without a token for
    /// the rest, so the end of a list is only believed if nothing comes after its last name. Google and Azure always give a token, and
    /// servers that stand for them ignore the place from which a list goes on.
    async fn pages(
        &self,
        prefix: &str,
        delimiter: Option<&'static str>,
        from: Option<String>,
        mut each: impl FnMut(Vec<Listed>, bool) -> Result<bool>,
    ) -> Result<usize> {
        let trusts_tokens = matches!(self.root.scheme(), Scheme::Gs | Scheme::Az);
        let mut is_beyond = !trusts_tokens;
        let (mut offset, mut reached, mut token) = (from.clone(), from.clone(), None);
        if prefix.is_empty() && offset.is_none() {
            self.check_root().await?;
        }
        let (mut rows, mut max_keys, mut was_refused) = (0usize, MAX_LIST_PAGE, false);
        for _ in 0..MAX_PAGES {
            let listing = PaginatedListOptions {
                offset: offset.clone(),
                delimiter: delimiter.map(Into::into),
                max_keys: Some(max_keys),
                page_token: token.clone(),
                ..PaginatedListOptions::default()
            };
            let mut ends = false;
            let mut page = match repeat(async || self.page(prefix, listing.clone()).await).await? {
                Answer::Page(page) => {
                    ends = trusts_tokens && page.token.is_none();
                    // Shorter and shorter pages lead to a name that is no path, and longer ones away from it.
                    max_keys = match was_refused {
                        true => (max_keys / 2).max(1),
                        false => MAX_LIST_PAGE.min(max_keys * PAGE_GROWTH),
                    };
                    page
                }
                Answer::NoPath(_) if max_keys > 1 => {
                    (max_keys, was_refused) = (max_keys / 2, true);
                    continue;
                }
                Answer::NoPath(path) if reached.as_ref().is_some_and(|reached| path <= *reached) => {
                    return Err(self.disorder("the object store changes names in its lists"));
                }
                Answer::NoPath(path) => {
                    // The next name often is none, too.
                    (max_keys, was_refused) = (2, false);
                    self.page_of_no_path(prefix, path)
                }
            };
            let place = |one: &Listed| match delimiter {
                Some(_) => after(prefix, &one.cursor),
                None => format!("{prefix}{}", one.cursor),
            };
            // Only the names before the first new one are left out, so a list that is not in order is still an error.
            if let Some(from) = &from {
                page.names.retain(|one| {
                    is_beyond |= place(one) > *from;
                    is_beyond
                });
            }
            let last_name = page.names.iter().map(place).max();
            reached = reached.max(last_name).max(page.last.clone());
            rows = rows.saturating_add(page.rows);
            token = page.token;
            if !each(page.names, token.is_some())? {
                return Ok(rows);
            }
            if token.is_some() {
                continue;
            }
            if page.rows == 0 || ends {
                return Ok(rows);
            }
            // Markers end with a '/' that is not shown. A page that has only such seems to bring nothing new.
            let next = reached.clone().filter(|reached| offset.as_ref() < Some(reached));
            let behind_marker =
                || page.last.map(|last| format!("{last}/")).filter(|last| offset.as_ref() < Some(last));
            let Some(next) = next.or_else(behind_marker) else {
                return Err(self.disorder("the object store lists names again that it listed before"));
            };
            offset = Some(next);
        }
        Err(self.disorder("the object store gives too many pages for one list"))
    }

    /// Checks that no name in the root of the bucket begins with a '/'. The crate shows it without, and so at a wrong place.
    async fn check_root(&self) -> Result<()> {
        let begins = async || match self.first("/").await {
            Ok(first) => Ok(first.is_some()),
            Err(object_store::Error::InvalidPath { .. }) => Ok(true),
            Err(error) => Err(explain_list(&self.root, error)),
        };
        match repeat(begins).await? {
            true => Err(self.disorder(
                "an object there has a name that begins with '/', which cannot be a path here; rename it",
            )),
            false => Ok(()),
        }
    }

    /// The first object whose name begins so, as it is shown.
    async fn first(&self, prefix: &str) -> object_store::Result<Option<Path>> {
        let one = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        let listed = self.store.list_paginated(Some(prefix), one).await?;
        Ok(listed.result.objects.into_iter().next().map(|meta| meta.location))
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
        let (mut entries, mut late, mut next) = (Vec::<(Entry, bool)>::new(), BTreeSet::new(), None);
        let mut last = from.map(str::to_owned);
        let offset = from.map(|from| format!("{prefix}{from}"));
        let listed = self.pages(&prefix, None, offset, |names, more| {
            for one in names {
                if last.as_deref().is_some_and(|last| one.cursor.as_str() <= last) {
                    late.insert(one.cursor);
                    continue;
                }
                if let Some((before, may_be_marker)) = entries.last_mut() {
                    *may_be_marker |= lies_in(&one.cursor, &before.name);
                }
                if entries.len() == limit {
                    next = last.take();
                    return Ok(false);
                }
                let may_be_marker = is_empty(&one.content);
                last = Some(one.cursor);
                entries.push((Entry { name: one.name, content: one.content }, may_be_marker));
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
        self.check_markers(&prefix, late).await?;
        Ok(Page { entries: self.without_markers(folder, entries).await?, next })
    }

    /// Checks that names that came late are those of markers. The '/' at the end of a marker `a/` is not shown, so it seems to come
    /// after `a-b`. Other names cannot come late. An object `a` may be there, too.
    async fn check_markers(&self, prefix: &str, late: BTreeSet<String>) -> Result<()> {
        let looked = late.into_iter().map(|name| async move {
            let shown = format!("{prefix}{name}");
            // The marker is the first object of its folder.
            let first = async || match self.first(&format!("{shown}/")).await {
                Ok(first) => Ok(first.is_some_and(|first| first.as_ref() == shown)),
                Err(object_store::Error::InvalidPath { .. }) => Ok(false),
                Err(error) => Err(explain_list(&self.root, error)),
            };
            let why = "the object store does not list names in the order of their bytes";
            if repeat(first).await? { Ok(()) } else { Err(self.disorder(why)) }
        });
        let looked: Vec<_> = looked.collect();
        stream::iter(looked).buffered(LOOKS_AT_ONCE).try_collect().await
    }

    /// Leaves out the objects that stand for folders. Their names end with a '/' that lists do not show, so no object has the name that
    /// is shown.
    async fn without_markers(&self, folder: &Key, entries: Vec<(Entry, bool)>) -> Result<Vec<Entry>> {
        let looked = entries.into_iter().map(|(entry, may_be_marker)| async move {
            if !may_be_marker || !matches!(entry.content, Content::File(_)) {
                return Ok(Some(entry));
            }
            match self.found(&self.root.below(&folder.join(&entry.name)?)?).await {
                Ok(_) => Ok(Some(entry)),
                Err(BackendError::NotFound { .. }) => Ok(None),
                Err(error @ BackendError::Denied { .. }) => {
                    let content = Content::Unreadable { why: error.to_string() };
                    Ok(Some(Entry { content, ..entry }))
                }
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
