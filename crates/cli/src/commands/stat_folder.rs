//! `gristmill stat` of a directory of a cluster.

use std::process::ExitCode;

use gristmill_client::{ClientError, Cluster, RemoteDataset, Url};
use gristmill_wire::action::Amount;
use serde_json::{Value as Json, json};

use crate::args::StatArgs;

use crate::commands::tree::unread;
use crate::commands::{line, variables};
use crate::error::CliError;
use crate::size::readable;
use crate::time::utc_text;

/// Shows the number and size of the files of a directory, and the variables if it is Zarr.
pub fn stat(args: &StatArgs, cluster: &Cluster, url: &Url, amount: &Amount) -> Result<ExitCode, CliError> {
    let (contents, unreadable) = match cluster.dataset(&url.path) {
        Ok(contents) => (Some(contents), None),
        Err(error) if args.var.is_some() => return Err(error.into()),
        // The directory has no known format.
        Err(error) if error.is_missing() => (None, None),
        Err(ClientError::Format(error)) => (None, Some(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let (only, failed) = (args.var.as_deref(), variables::failed(&url.path));
    if args.json {
        let mut text = json!({
            "path": url.path, "kind": "directory", "files": amount.files, "length": amount.bytes,
            "unread": amount.unread, "changed": (amount.changed > 0).then_some(amount.changed),
        });
        if let Some(why) = &unreadable {
            text["unreadable"] = json!(why);
        }
        if let (Json::Object(text), Some(contents)) = (&mut text, &contents) {
            let mut shown = variables::to_json(&contents.dataset, only, args.chunks, None).map_err(failed)?;
            if let (Some(name), Some(one)) = (only, shown.get_mut("variables").and_then(|all| all.get_mut(0)))
            {
                let held = target_shares(contents, name)?;
                let held = held.iter().map(|(target, node, chunks, bytes)| {
                    json!({ "target": target, "node": node, "chunks": chunks, "bytes": bytes })
                });
                one["targets"] = Json::Array(held.collect());
            }
            text.extend(shown);
        }
        return line(&text.to_string());
    }
    let mut text = format!(
        "{url}: a directory with {} file{}, {} ({} bytes){}{}",
        amount.files,
        if amount.files == 1 { "" } else { "s" },
        readable(amount.bytes),
        amount.bytes,
        unread(amount.unread),
        if amount.changed > 0 {
            format!(", last changed {}", utc_text(amount.changed))
        } else {
            String::new()
        }
    );
    if let Some(why) = unreadable {
        text.push_str(&format!("\n  its contents cannot be shown: {why}"));
    }
    if let Some(contents) = &contents {
        text.push_str(&variables::to_text(&contents.dataset, only, args.chunks, None).map_err(failed)?);
        for (target, node, chunks, bytes) in
            only.map_or(Ok(Vec::new()), |name| target_shares(contents, name))?
        {
            let s = if chunks == 1 { "" } else { "s" };
            text.push_str(&format!(
                "\n    on target {target} ({node}): {chunks} chunk{s}, {}",
                readable(bytes)
            ));
        }
    }
    line(&text)
}

/// Number and address of each target that holds a part of a variable, with its chunks and bytes. Empty if that would
/// take too many requests.
fn target_shares(contents: &RemoteDataset, name: &str) -> Result<Vec<(u32, String, u64, u64)>, CliError> {
    let Ok(table) = contents.dataset.table(name) else { return Ok(Vec::new()) };
    let shares = contents.shares(&table)?.unwrap_or_default();
    let held = shares.into_iter().filter(|(_, share)| share.chunks > 0);
    Ok(held.map(|(target, share)| (target.number, target.address, share.chunks, share.bytes)).collect())
}
