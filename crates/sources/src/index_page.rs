//! Pages of web servers that list the files of a folder, as nginx, Apache, Caddy, and others make them.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use url::Url;

/// Most bytes of a page.
pub const MAX_INDEX_BYTES: usize = 32 << 20;

/// Most names of a page.
pub const MAX_INDEX_NAMES: usize = 1 << 18;

/// Names to which the links of a page lead, one level below the page itself, and whether each is a folder: its link ends with `/`.
/// `None` if there are more than [`MAX_INDEX_NAMES`].
///
/// ```
/// let page = url::Url::parse("https://host/data/")?;
/// let text = r#"<a href="../">up</a> <a href="?C=M;O=A">sort</a> <a href='a%20b.nc'>a b.nc</a> <a href="/data/2001/">2001/</a>"#;
/// let names = gristmill_sources::names_below(&page, text).unwrap_or_default();
/// assert_eq!(names.into_iter().collect::<Vec<_>>(), [("2001".to_owned(), true), ("a b.nc".to_owned(), false)]);
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn names_below(page: &Url, text: &str) -> Option<BTreeMap<String, bool>> {
    let mut names = BTreeMap::new();
    for link in links(text) {
        let Some((name, is_folder)) = page.join(&link).ok().and_then(|target| name_in(page, &target)) else {
            continue;
        };
        let known = names.entry(name).or_insert(is_folder);
        *known |= is_folder;
        if names.len() > MAX_INDEX_NAMES {
            return None;
        }
    }
    Some(names)
}

/// The name of a URL in the folder of the page.
fn name_in(page: &Url, target: &Url) -> Option<(String, bool)> {
    if target.origin() != page.origin() || target.query().is_some() {
        return None;
    }
    let folder = &page.path()[..=page.path().rfind('/')?];
    let rest = target.path().strip_prefix(folder)?;
    let (name, is_folder) = match rest.strip_suffix('/') {
        Some(name) => (name, true),
        None => (rest, false),
    };
    let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    is_name.then_some((name, is_folder))
}

/// The values of all `href` attributes.
fn links(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = rest.as_bytes().windows(5).position(|five| five.eq_ignore_ascii_case(b"href="))?;
            rest = rest.get(at + 5..)?;
            let value = match rest.as_bytes().first()? {
                quote @ (b'"' | b'\'') => {
                    rest = &rest[1..];
                    rest.split(char::from(*quote)).next()
                }
                _ => rest.split(|c: char| c.is_ascii_whitespace() || c == '>').next(),
            };
            let value = value?;
            rest = rest.get(value.len()..)?;
            if !value.starts_with('#') {
                return Some(unescaped(value));
            }
        }
    })
}

/// Text without the references of HTML that servers use in links.
fn unescaped(value: &str) -> String {
    let value = value.trim().replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'");
    value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<(String, bool)> {
        let page = Url::parse("http://host:8000/a/b/").unwrap();
        names_below(&page, text).unwrap().into_iter().collect()
    }

    #[test]
    fn links_below_the_page_are_names() {
        let text = concat!(
            r#"<A HREF="x.nc">x</A><a class=l href=y.nc>y</a><a href="./z/">z</a><a href="//host:8000/a/b/w">w</a>"#,
            r#"<a href="x.nc">again</a><a href="q&amp;r.nc">q</a><a href="%C3%A4">umlaut</a>"#,
        );
        let wanted = ["q&r.nc", "w", "x.nc", "y.nc", "z", "ä"];
        let found = names(text);
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), wanted);
        assert_eq!(found.iter().filter(|(_, folder)| *folder).count(), 1);
    }

    #[test]
    fn links_with_other_letters_do_not_end_the_list() {
        let text = "<a href=\"/info/café\">x</a><a href='b/ä'>x</a><a href=ö>x</a><a href=\"z.nc\">z</a>";
        assert_eq!(names(text), [("z.nc".to_owned(), false), ("ö".to_owned(), false)]);
    }

    #[test]
    fn other_links_are_left_out() {
        for other in [
            "..",
            "../",
            "/",
            "/a/",
            "/a/b/",
            ".",
            "#top",
            "?C=N",
            "x?C=N",
            "http://other/a/b/x",
            "x/y",
            "a%2Fb",
            "%ff",
            "mailto:a@b",
            "javascript:x()",
            "https://host:8000/a/b/x",
            "",
        ] {
            assert_eq!(names(&format!("<a href=\"{other}\">")), [], "{other}");
        }
        for broken in ["<a href=", "<a href=\"", "href='x", "hrefhref=", "<a href>"] {
            names(broken);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".*", page in "[a-z/%]{0,20}") {
            if let Ok(page) = Url::parse(&format!("http://h/{page}")) {
                let _ = names_below(&page, &text);
                let _ = names_below(&page, &format!("<a href={text}"));
            }
        }
    }
}
