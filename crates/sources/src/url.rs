//! URLs of files and folders outside of clusters.

use std::fmt;
use std::str::FromStr;

use gristmill_backend::Key;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters of a path that stay as they are in a URL.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'=')
    .remove(b',')
    .remove(b'+')
    .remove(b':')
    .remove(b'@');

/// A kind of storage, as the first part of a URL names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Amazon S3, and every server with its protocol: `s3://BUCKET/KEY`.
    S3,
    /// Google Cloud Storage: `gs://BUCKET/KEY`.
    Gs,
    /// Azure Blob Storage: `az://CONTAINER/KEY`. The environment names the account.
    Az,
    /// A web server without encryption: `http://HOST[:PORT]/PATH`.
    Http,
    /// A web server: `https://HOST[:PORT]/PATH`.
    Https,
    /// The file system of Ceph: `cephfs://[NAME]/PATH`. The environment names the cluster. Without a name it is its default file system.
    CephFs,
}

impl Scheme {
    const ALL: [Scheme; 6] =
        [Scheme::S3, Scheme::Gs, Scheme::Az, Scheme::Http, Scheme::Https, Scheme::CephFs];

    /// The text before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::S3 => "s3",
            Scheme::Gs => "gs",
            Scheme::Az => "az",
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::CephFs => "cephfs",
        }
    }

    /// Whether it is a web server, whose paths are percent-encoded.
    pub const fn is_web(self) -> bool {
        matches!(self, Scheme::Http | Scheme::Https)
    }
}

/// A file or folder of an object store, of a web server or of CephFS.
///
/// ```
/// use gristmill_sources::SourceUrl;
///
/// let url: SourceUrl = "s3://era5/2001/tas.nc".parse()?;
/// assert_eq!((url.container(), url.key().as_str()), ("era5", "2001/tas.nc"));
/// assert_eq!(url.to_string(), "s3://era5/2001/tas.nc");
/// assert!("s3://user:secret@era5/x".parse::<SourceUrl>().is_err());
/// # Ok::<(), gristmill_sources::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceUrl {
    scheme: Scheme,
    container: String,
    key: Key,
}

/// The reason why a text is not the URL of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {why}")]
pub struct UrlError {
    /// The URL, without what may be a secret.
    text: String,
    why: String,
}

impl SourceUrl {
    /// Whether a text begins as such a URL does.
    pub fn is_url(text: &str) -> bool {
        split(text).is_some()
    }

    /// The kind of storage.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The bucket, the container of blobs, the host with its port, or the file system (perhaps empty).
    pub fn container(&self) -> &str {
        &self.container
    }

    /// The path in the bucket or on the host. The root stands for the whole bucket.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The same bucket or host with another path.
    pub fn with_key(&self, key: Key) -> SourceUrl {
        SourceUrl { key, ..self.clone() }
    }

    /// The file or folder with this key below this folder.
    ///
    /// # Errors
    /// The error is [`BackendError::InvalidKey`](gristmill_backend::BackendError::InvalidKey) if the whole key is too long.
    pub fn below(&self, key: &Key) -> gristmill_backend::Result<SourceUrl> {
        if key.is_root() {
            return Ok(self.clone());
        }
        Ok(self.with_key(self.key.join(key.as_str())?))
    }

    /// The folder above, and the name in it; `None` for a whole bucket or host.
    pub fn split_name(&self) -> Option<(SourceUrl, String)> {
        if self.key.is_root() {
            return None;
        }
        let (folder, name) = self.key.as_str().rsplit_once('/').unwrap_or(("", self.key.as_str()));
        // A part of a key is a key.
        let folder = Key::new(folder).unwrap_or_default();
        Some((self.with_key(folder), name.to_owned()))
    }
}

/// The scheme of a URL, and the text after `://`.
fn split(text: &str) -> Option<(Scheme, &str)> {
    let (name, rest) = text.split_once("://")?;
    let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(name))?;
    Some((scheme, rest))
}

/// A URL without a password and without a query, which may be a signature.
///
/// ```
/// assert_eq!(gristmill_sources::without_secrets("ftp://me:hidden@host/x?key=hidden"), "ftp://host/x");
/// ```
pub fn without_secrets(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    // A password may hold any character.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

/// The endpoint and the object of a URL with the bucket in its path: `http://HOST[:PORT]/BUCKET/KEY`.
///
/// ```
/// let (endpoint, object) = gristmill_sources::path_style("http://localhost:9000/bucket/a/b%20c")?;
/// assert_eq!((endpoint.as_str(), object.to_string().as_str()), ("http://localhost:9000", "s3://bucket/a/b c"));
/// assert_eq!(gristmill_sources::path_style("http://localhost:9000/bucket//a/b%20c")?.1, object);
/// # Ok::<(), gristmill_sources::UrlError>(())
/// ```
///
/// # Errors
/// Returns an error if it is another URL, or if it has a user, a password or a query.
pub fn path_style(text: &str) -> Result<(String, SourceUrl), UrlError> {
    check_endpoint(text)?;
    let wrong = |why: &str| UrlError { text: without_secrets(text), why: why.to_owned() };
    let parsed = url::Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    let host = parsed.host_str().unwrap_or_default();
    let port = parsed.port().map_or_else(String::new, |port| format!(":{port}"));
    let (bucket, key) = parsed.path().trim_start_matches('/').split_once('/').unwrap_or_default();
    // PyActiveStorage puts two slashes between bucket and key.
    let key = percent_decode_str(key.trim_start_matches('/')).decode_utf8();
    let key = key.map_err(|_| wrong("its path is not UTF-8"))?;
    if !is_bucket(bucket) || key.is_empty() {
        return Err(wrong("write http://HOST[:PORT]/BUCKET/KEY"));
    }
    let key = Key::new(key).map_err(|error| wrong(&error.to_string()))?;
    let endpoint = format!("{}://{host}{port}", parsed.scheme());
    Ok((endpoint, SourceUrl { scheme: Scheme::S3, container: bucket.to_owned(), key }))
}

/// Whether a name can be that of a bucket.
fn is_bucket(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    !name.is_empty() && !matches!(name, "." | "..") && name.chars().all(allowed)
}

/// Checks the URL of a server with the protocol of S3: a scheme, a host, perhaps a port and a path, and no secrets.
///
/// # Errors
/// Returns an error if it is something else, or if it has a user, a password or a query.
pub fn check_endpoint(endpoint: &str) -> Result<(), UrlError> {
    let wrong = |why: &str| Err(UrlError { text: without_secrets(endpoint), why: why.to_owned() });
    match url::Url::parse(endpoint) {
        Ok(url) if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() => {
            wrong("the endpoint of a server is http://HOST[:PORT] or https://HOST[:PORT]")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            wrong("an endpoint must not hold a user or a password; give credentials in the environment")
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => wrong("an endpoint has no query"),
        Ok(_) => Ok(()),
        Err(_) => wrong("the endpoint of a server is http://HOST[:PORT] or https://HOST[:PORT]"),
    }
}

impl FromStr for SourceUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<SourceUrl, UrlError> {
        let wrong = |why: String| UrlError { text: without_secrets(text), why };
        let (scheme, rest) = split(text).ok_or_else(|| {
            wrong(
                "it is not the URL of a file; write s3://, gs://, az://, http://, https:// or cephfs://"
                    .to_owned(),
            )
        })?;
        let (container, path) = rest.split_once('/').unwrap_or((rest, ""));
        if container.contains('@') {
            let why = "a URL must not hold a user or a password; give credentials in the environment";
            return Err(wrong(why.to_owned()));
        }
        if scheme.is_web() && (container.contains(['?', '#']) || path.contains(['?', '#'])) {
            return Err(wrong("it has a query, which is not supported; name a file by its path".to_owned()));
        }
        if scheme == Scheme::Az && path.contains('?') {
            return Err(wrong("it has a signature; give it in AZURE_STORAGE_SAS_KEY".to_owned()));
        }
        let container = if scheme.is_web() {
            let parsed = url::Url::parse(&format!("{}://{container}/", scheme.name()));
            let parsed = parsed.map_err(|error| wrong(format!("it names no host: {error}")))?;
            let host = parsed.host_str().unwrap_or_default().to_owned();
            parsed.port().map_or(host.clone(), |port| format!("{host}:{port}"))
        } else {
            container.to_owned()
        };
        let is_default = scheme == Scheme::CephFs && container.is_empty();
        if !scheme.is_web() && !is_default && !is_bucket(&container) {
            let why = match scheme {
                Scheme::CephFs => {
                    "it names no file system; write cephfs:///PATH or cephfs://NAME/PATH".to_owned()
                }
                _ => format!("it names no bucket; write {}://BUCKET/KEY", scheme.name()),
            };
            return Err(wrong(why));
        }
        let path = path.trim_end_matches('/');
        let path = if scheme.is_web() {
            let decoded = |part| percent_decode_str(part).decode_utf8();
            let parts = path.split('/').map(decoded).collect::<Result<Vec<_>, _>>();
            let parts = parts.map_err(|_| wrong("its path is not UTF-8".to_owned()))?;
            if parts.iter().any(|part| part.contains('/')) {
                return Err(wrong(
                    "a name in its path has an encoded '/', which is not supported".to_owned(),
                ));
            }
            parts.join("/")
        } else {
            path.to_owned()
        };
        let key = Key::new(path).map_err(|error| wrong(error.to_string()))?;
        Ok(SourceUrl { scheme, container, key })
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.container)?;
        match (self.key.is_root(), self.scheme.is_web()) {
            (true, _) => f.write_str("/"),
            (false, true) => write!(f, "/{}", encoded(self.key.as_str())),
            (false, false) => write!(f, "/{}", self.key),
        }
    }
}

/// A path as a URL of a web server has it.
pub(crate) fn encoded(path: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(path, IN_PATH)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn urls_are_read_and_shown() {
        for (text, container, key) in [
            ("s3://bucket/a/b.nc", "bucket", "a/b.nc"),
            ("gs://b-1.x_y/a", "b-1.x_y", "a"),
            ("az://c/a b", "c", "a b"),
            ("http://localhost:8000/a%20b/%C3%A4.f64", "localhost:8000", "a b/ä.f64"),
            ("https://[::1]:80/x=1,2", "[::1]:80", "x=1,2"),
            ("s3://bucket/", "bucket", ""),
            ("cephfs:///a b/c%20.f64", "", "a b/c%20.f64"),
            ("cephfs://fs-2/a", "fs-2", "a"),
            ("cephfs:///", "", ""),
        ] {
            let url: SourceUrl = text.parse().unwrap();
            assert_eq!((url.container(), url.key().as_str()), (container, key));
            assert_eq!(url.to_string(), text);
        }
        for (text, shown) in
            [("S3://b", "s3://b/"), ("s3://b/a/", "s3://b/a"), ("HTTPS://Host:443/a//", "https://host/a")]
        {
            assert_eq!(text.parse::<SourceUrl>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn the_bucket_of_a_path_has_no_query_and_leads_nowhere_else() {
        for text in [
            "http://h/admin%3Fcmd=x/k",
            "http://h/a%23/k",
            "http://h/../k",
            "http://h/bucket/",
            "http://h/bucket",
            "http://h/",
            "http://h/bucket/a/../../../x%00",
            "http://me:hidden@h/bucket/k",
            "http://h/bucket/k?x=hidden",
            "ftp://h/bucket/k",
        ] {
            let error = path_style(text).map(|(endpoint, url)| format!("{endpoint} {url}")).unwrap_err();
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
        let (endpoint, url) = path_style("http://LOCALHOST:80/b/a").unwrap();
        assert_eq!((endpoint.as_str(), url.to_string().as_str()), ("http://localhost", "s3://b/a"));
    }

    #[test]
    fn nonsense_is_refused_and_secrets_are_not_shown() {
        for text in [
            "file:///x",
            "/x",
            "s3://",
            "s3:///x",
            "cephfs://admin:secret@mon/x",
            "cephfs:///a/../b",
            "s3://b/a//b",
            "s3://b/../c",
            "http:///x",
            "http://h/a%2Fb",
            "http://h/a%2e%2e/../b",
            "http://h/%ff",
            "https://user:secret@host/x",
            "https://host/x?signature=secret",
            "s3://key:secret@bucket/x",
            "az://c/x?sv=1&sig=secret",
            "https://user:sec/secret?secret@host/x",
        ] {
            let error = text.parse::<SourceUrl>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_url_is_a_folder_and_a_name() {
        let url: SourceUrl = "https://host/a/b".parse().unwrap();
        let (folder, name) = url.split_name().unwrap();
        assert_eq!((folder.to_string().as_str(), name.as_str()), ("https://host/a", "b"));
        assert_eq!(folder.split_name().unwrap().0.to_string(), "https://host/");
        assert_eq!(folder.split_name().unwrap().0.split_name(), None);
    }
}
