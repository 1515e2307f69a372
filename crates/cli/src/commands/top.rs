//! `gristmill top`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use gristmill_client::Cluster;
use ratatui::crossterm::terminal;

use crate::args::TopArgs;
use crate::commands::names::remote;
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::top::changes::Changes;
use crate::top::live::live;
use crate::top::picture::{Picture, Sort};

/// Columns of a picture without a terminal.
const WIDE: u16 = 120;

/// Shows the state of the nodes of a cluster: once, or until the user ends it.
pub fn top(args: &TopArgs) -> Result<ExitCode, CliError> {
    let cluster = connect(remote(&args.cluster)?, args.reach)?;
    // The first question waits for the cluster as in every command; later ones are repeated anyway.
    cluster.ping()?;
    if args.json {
        let status = serde_json::to_string(&cluster.status()?);
        return line(&status.map_err(|error| CliError::Usage(error.to_string()))?);
    }
    if args.once || !std::io::stdout().is_terminal() {
        return once(args, &cluster);
    }
    let first = cluster.status()?;
    live(cluster, first, args.interval)
}

/// Asks twice, and prints the rates between the two answers.
fn once(args: &TopArgs, cluster: &Cluster) -> Result<ExitCode, CliError> {
    let mut changes = Changes::default();
    changes.update(&cluster.status()?);
    std::thread::sleep(args.interval);
    let status = cluster.status()?;
    changes.update(&status);
    let width =
        if std::io::stdout().is_terminal() { terminal::size().map_or(WIDE, |size| size.0) } else { WIDE };
    let picture = Picture::new(cluster.entry(), &status, &changes, Sort::default());
    let mut text = String::new();
    for line in picture.head(width).into_iter().chain(picture.body(width)) {
        text.push_str(line.to_string().trim_end());
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes()).map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}
