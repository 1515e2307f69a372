//! Which cluster, and as which of its users.

use std::path::PathBuf;

/// The name of the user of Ceph if nothing else is said.
const DEFAULT_ID: &str = "admin";

/// A cluster, and the user as whom it is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterUser {
    /// The user of Ceph, without `client.`.
    pub id: String,
    /// The file with the configuration. `None`: `/etc/ceph/ceph.conf`, or what `CEPH_CONF` names.
    pub configuration: Option<PathBuf>,
}

impl ClusterUser {
    /// The cluster that the environment names, as the tools of Ceph understand it: `CEPH_CONF` has the path of the configuration, and
    /// `CEPH_ARGS` may name the user (`--id NAME`, `-n client.NAME`).
    #[must_use]
    pub fn of_environment() -> ClusterUser {
        let named = ClusterUser::of_arguments(&std::env::var("CEPH_ARGS").unwrap_or_default());
        let path = || std::env::var_os("CEPH_CONF").filter(|path| !path.is_empty()).map(PathBuf::from);
        ClusterUser { configuration: named.configuration.or_else(path), ..named }
    }

    /// The cluster and the user that arguments of a tool of Ceph name. Of several the last one counts.
    #[must_use]
    pub fn of_arguments(arguments: &str) -> ClusterUser {
        let id = id_of(arguments).unwrap_or_else(|| DEFAULT_ID.to_owned());
        ClusterUser { id, configuration: configuration_of(arguments) }
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
