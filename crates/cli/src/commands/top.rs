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

/// Columns of a picture that goes to no terminal.
const WIDE: u16 = 120;

/// Shows what the nodes of a cluster do: once, or until somebody has seen enough.
pub fn top(args: &TopArgs) -> Result<ExitCode, CliError> {
    let cluster = connect(remote(&args.cluster)?, args.reach)?;
    // As patient as every first question; those that follow are asked again anyway.
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

/// Two questions, for what happens between them.
fn once(args: &TopArgs, cluster: &Cluster) -> Result<ExitCode, CliError> {
    let mut changes = Changes::default();
    changes.take(&cluster.status()?);
    std::thread::sleep(args.interval);
    let status = cluster.status()?;
    changes.take(&status);
    let width =
        if std::io::stdout().is_terminal() { terminal::size().map_or(WIDE, |size| size.0) } else { WIDE };
    let picture = Picture::of(cluster.entry(), &status, &changes, Sort::default());
    let mut text = String::new();
    for line in picture.head(width).into_iter().chain(picture.body(width)) {
        text.push_str(line.to_string().trim_end());
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes()).map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}
