//! `gristmill attach` and `gristmill detach`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gristmill_client::{Location, Url};
use gristmill_wire::TreeSource;
use gristmill_wire::action::{Attach, Tree};
use serde_json::json;

use crate::args::{AttachArgs, DetachArgs};
use crate::commands::names::remote;
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::time::utc_text;

/// Permission bits of the files of a tree.
const DEFAULT_MODE: u16 = 0o444;

/// Attaches a tree, or lists those that are attached.
pub fn attach(args: &AttachArgs) -> Result<ExitCode, CliError> {
    if args.list {
        return list(args);
    }
    let [tree, path] = &*args.paths else {
        let text = "name a tree and its path in the cluster: gristmill attach s3://bucket/data grist:///data";
        return Err(CliError::Usage(text.to_owned()));
    };
    let url = in_cluster(&path.parse()?)?;
    let source = TreeSource {
        url: tree_url(tree)?,
        endpoint: args.endpoint.clone(),
        region: args.region.clone(),
        user_credentials: args.user_credentials,
        anonymous: args.anonymous,
        allow_local: args.allow_local,
        without_change_time: args.without_change_time,
    };
    let cluster = connect(&url, args.reach)?;
    let mode = args.mode.unwrap_or(DEFAULT_MODE);
    let path = without_end_slash(&url.path).to_owned();
    let tree = cluster.attach(&Attach { path, source, mode })?;
    match args.json {
        true => line(&as_json(&tree).to_string()),
        false => line(&format!("{} is attached as {}, {}", tree.source.url, tree.path, readers(&tree))),
    }
}

/// Detaches a tree. Its files stay where they are.
pub fn detach(args: &DetachArgs) -> Result<ExitCode, CliError> {
    let url = in_cluster(&args.path)?;
    connect(&url, args.reach)?.detach(without_end_slash(&url.path))?;
    Ok(ExitCode::SUCCESS)
}

fn list(args: &AttachArgs) -> Result<ExitCode, CliError> {
    let cluster = match &*args.paths {
        [] => "grist:///".parse()?,
        [cluster] => cluster.parse()?,
        _ => {
            return Err(CliError::Usage(
                "--list takes only the cluster: gristmill attach --list grist:///".to_owned(),
            ));
        }
    };
    let trees = connect(remote(&cluster)?, args.reach)?.trees()?;
    if args.json {
        let trees: Vec<_> = trees.iter().map(as_json).collect();
        return line(&json!({ "trees": trees }).to_string());
    }
    for tree in trees {
        let Tree { path, source, owner, mode, attached, .. } = &tree;
        line(&format!("{path}  {}", source.url))?;
        let state = match &tree.failed {
            Some(why) => format!("not reached: {why}"),
            None if source.user_credentials => format!("{}, with credentials of users", readers(&tree)),
            None => readers(&tree),
        };
        line(&format!("  owner {owner}, mode {mode:03o}, attached {}, {state}", utc_text(*attached)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn readers(tree: &Tree) -> String {
    match &*tree.seen_by {
        [one] => format!("read by the node of target {one}"),
        several => {
            let numbers: Vec<String> = several.iter().map(u32::to_string).collect();
            format!("read by the nodes of the targets {}", numbers.join(", "))
        }
    }
}

fn as_json(tree: &Tree) -> serde_json::Value {
    json!({
        "path": tree.path, "url": tree.source.url, "endpoint": tree.source.endpoint, "region": tree.source.region,
        "user_credentials": tree.source.user_credentials,
        "anonymous": tree.source.anonymous, "allow_local": tree.source.allow_local,
        "without_change_time": tree.source.without_change_time,
        "owner": tree.owner, "mode": format!("{:03o}", tree.mode), "attached": tree.attached,
        "targets": tree.seen_by, "failed": tree.failed,
    })
}

/// The URL of a path in a cluster. An absolute path is one of the cluster that the environment names.
fn in_cluster(location: &Location) -> Result<Url, CliError> {
    match location.local().and_then(Path::to_str) {
        Some(path) if path.starts_with('/') => Ok(Url { entry: None, path: path.to_owned() }),
        _ => remote(location).cloned(),
    }
}

/// The path without a slash at its end.
fn without_end_slash(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => path,
        path => path,
    }
}

/// The URL of a tree. A path is a folder that the nodes have mounted under this name.
fn tree_url(tree: &str) -> Result<String, CliError> {
    if tree.starts_with("file://") {
        return Ok(tree.to_owned());
    }
    match tree.parse::<Location>()? {
        Location::Outside(url) => Ok(url.to_string()),
        Location::Local(path) => {
            let whole: PathBuf = std::path::absolute(&path).map_err(|error| {
                CliError::Usage(format!("{}: {error}; give the whole path", path.display()))
            })?;
            let name = whole.to_str().ok_or_else(|| {
                CliError::Usage(format!("{}: the path is not UTF-8; rename the folder", whole.display()))
            })?;
            Ok(format!("file://{name}"))
        }
        Location::Remote(url) => Err(CliError::Usage(format!(
            "{url} is in a cluster already; name a folder that the nodes have mounted, a bucket or a web server"
        ))),
    }
}
