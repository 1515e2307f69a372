//! Which cluster, as which of its users, and which folder.

use std::fmt;
use std::path::PathBuf;

/// The name of the user of Ceph if nothing else is said.
const DEFAULT_ID: &str = "admin";

/// A folder of a file system of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CephOptions {
    /// The user of Ceph, without `client.`.
    pub id: String,
    /// The file with the configuration. `None`: `/etc/ceph/ceph.conf`, or what `CEPH_CONF` names.
    pub configuration: Option<PathBuf>,
    /// The file system. `None`: the default one of the cluster.
    pub file_system: Option<String>,
    /// The folder, with `/` between its parts. Empty: the whole file system.
    pub folder: String,
}

impl CephOptions {
    /// A folder of the cluster that the environment names, as the tools of Ceph understand it: `CEPH_CONF` has the path of the
    /// configuration, and `CEPH_ARGS` may name the user (`--id NAME`, `-n client.NAME`).
    ///
    /// An empty `file_system` is the default one of the cluster.
    #[must_use]
    pub fn of_environment(file_system: &str, folder: &str) -> CephOptions {
        let words = std::env::var("CEPH_ARGS").unwrap_or_default();
        CephOptions {
            id: id_of(&words).unwrap_or_else(|| DEFAULT_ID.to_owned()),
            configuration: configuration_of(&words)
                .or_else(|| std::env::var_os("CEPH_CONF").filter(|path| !path.is_empty()).map(PathBuf::from)),
            file_system: Some(file_system.to_owned()).filter(|name| !name.is_empty()),
            folder: folder.trim_matches('/').to_owned(),
        }
    }
}

/// The URL of the folder.
impl fmt::Display for CephOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cephfs://{}/{}", self.file_system.as_deref().unwrap_or_default(), self.folder)
    }
}

/// The user that the arguments of a tool of Ceph name. The last one counts.
fn id_of(arguments: &str) -> Option<String> {
    let id = |(option, value): (&str, &str)| match option {
        "--id" | "--user" => Some(value.to_owned()),
        "--name" | "-n" => value.strip_prefix("client.").map(str::to_owned),
        _ => None,
    };
    options_of(arguments).into_iter().filter_map(id).next_back()
}

/// The configuration that the arguments of a tool of Ceph name.
fn configuration_of(arguments: &str) -> Option<PathBuf> {
    let path = |(option, value): (&str, &str)| match option {
        "--conf" | "-c" => Some(PathBuf::from(value)),
        "--cluster" => Some(PathBuf::from(format!("/etc/ceph/{value}.conf"))),
        _ => None,
    };
    options_of(arguments).into_iter().filter_map(path).next_back()
}

/// The options with their values: `--option value` or `--option=value`.
fn options_of(arguments: &str) -> Vec<(&str, &str)> {
    let (mut options, mut words) = (Vec::new(), arguments.split_whitespace().peekable());
    while let Some(word) = words.next() {
        let pair = word.split_once('=').or_else(|| Some((word, *words.peek()?)));
        options.extend(pair.filter(|(option, _)| option.starts_with('-')));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_found_among_the_arguments_of_tools() {
        for (arguments, id) in [
            ("", None),
            ("--id reader", Some("reader")),
            ("--conf /x --id=reader --keyring y", Some("reader")),
            ("-n client.reader", Some("reader")),
            ("--name=client.a --id b", Some("b")),
            ("-n osd.0 --id", None),
        ] {
            assert_eq!(id_of(arguments).as_deref(), id, "{arguments}");
        }
    }

    #[test]
    fn the_cluster_is_found_among_the_arguments_of_tools() {
        for (arguments, path) in [
            ("--id reader", None),
            ("--conf /x --id=reader", Some("/x")),
            ("-c /x", Some("/x")),
            ("--conf=/x", Some("/x")),
            ("--cluster backup", Some("/etc/ceph/backup.conf")),
        ] {
            assert_eq!(configuration_of(arguments), path.map(PathBuf::from), "{arguments}");
        }
    }
}
