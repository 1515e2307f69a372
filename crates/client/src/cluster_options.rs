//! Options of a connection to a cluster, which may come from the environment.

use std::path::PathBuf;
use std::time::Duration;

use gristmill_wire::SourceAccess;

use crate::{ClientError, Location, MAX_WAIT, Url};

/// Values that turn a switch off.
const NO: [&str; 6] = ["0", "n", "no", "off", "f", "false"];

/// Options of a connection to a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Address of the entry node: `HOST:PORT`, `unix:SOCKET`, or `rados://POOL/CLUSTER` if the nodes are noted in Ceph.
    pub entry: String,
    /// Certificate authority, PEM. With it, connections over TCP use TLS.
    pub ca: Option<PathBuf>,
    /// Token that names the principal. It is sent to the entry node only.
    pub token: Option<String>,
    /// Credentials of the user for trees that are read with those of users. They are sent to the entry node only.
    pub source: Option<SourceAccess>,
    /// Longest time without a sign of life from a node; 10 seconds by default.
    pub stall: Option<Duration>,
    /// Time for which requests to the entry node are repeated while it is away or its cluster is starting; at least
    /// [`ENTRY_PATIENCE`](crate::ENTRY_PATIENCE).
    pub wait: Duration,
    /// Whether nodes compare all bytes that are read with their checksums, even bytes that they compared within the
    /// last hour.
    pub verify: bool,
}

impl ClusterOptions {
    /// Options from the environment: `GRISTMILL_CA`, `GRISTMILL_TOKEN` or `GRISTMILL_TOKEN_FILE`, `GRISTMILL_SOURCE_ID` with
    /// `GRISTMILL_SOURCE_SECRET` and for some also `GRISTMILL_SOURCE_TOKEN` (credentials for storage outside), `GRISTMILL_WAIT`
    /// (seconds) and `GRISTMILL_VERIFY` (any value except 0, n, no, off, f and false). Without `entry` the address is
    /// that of `GRISTMILL_CLUSTER`.
    ///
    /// # Errors
    /// The error is [`ClientError::Usage`] if no cluster is named or `GRISTMILL_WAIT` is not a number of seconds from 0
    /// to [`MAX_WAIT`], and [`ClientError::Io`] if the file of the token cannot be read.
    pub fn from_env(entry: Option<&str>) -> Result<ClusterOptions, ClientError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let entry = entry.map(str::to_owned).or_else(|| variable("GRISTMILL_CLUSTER")).ok_or_else(|| {
            ClientError::Usage(
                "the URL names no cluster; write grist://HOST:PORT/PATH or set GRISTMILL_CLUSTER".into(),
            )
        })?;
        // The URL that `gristmill up` prints is accepted too.
        let entry = match Location::parse(&entry) {
            Ok(Location::Remote(Url { entry: Some(named), .. })) => named,
            _ => entry.strip_prefix("grist://").map_or(entry.clone(), str::to_owned),
        };
        let token = match (variable("GRISTMILL_TOKEN"), variable("GRISTMILL_TOKEN_FILE")) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(&path).map_err(|source| ClientError::Io {
                    verb: "read",
                    path: PathBuf::from(&path),
                    source,
                })?;
                Some(text.trim().to_owned())
            }
            (None, None) => None,
        };
        let wait = variable("GRISTMILL_WAIT").map(|text| parse_wait(&text).map_err(ClientError::Usage));
        let wait = wait.transpose()?.unwrap_or_default();
        let ca = variable("GRISTMILL_CA").map(PathBuf::from);
        let verify =
            variable("GRISTMILL_VERIFY").is_some_and(|text| !NO.contains(&text.to_lowercase().as_str()));
        let (id, secret) = (variable("GRISTMILL_SOURCE_ID"), variable("GRISTMILL_SOURCE_SECRET"));
        if id.is_some() != secret.is_some() {
            let text = "GRISTMILL_SOURCE_ID and GRISTMILL_SOURCE_SECRET belong together; set both, or none";
            return Err(ClientError::Usage(text.into()));
        }
        let token_of_session = variable("GRISTMILL_SOURCE_TOKEN");
        let source = id.zip(secret).map(|(id, secret)| SourceAccess { id, secret, token: token_of_session });
        Ok(ClusterOptions { entry, ca, token, source, stall: None, wait, verify })
    }
}

/// Reads a number of seconds to wait for a cluster.
///
/// # Errors
/// Returns a message if the text is not a number from 0 to [`MAX_WAIT`].
pub fn parse_wait(text: &str) -> Result<Duration, String> {
    let most = MAX_WAIT.as_secs_f64();
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=most).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        format!("'{text}' is not a time to wait for a cluster; give seconds from 0 to {most}, for example 10")
    })?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
