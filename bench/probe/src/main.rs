//! `gristmill-probe` times one thing per line of standard input, so that a driver can interleave the runtime
//! with other programs in one run and no process start is in the timing.
//!
//! Each command is a JSON object on one line and gets one JSON object on one line back:
//! ```text
//! {"op":"floor","path":"data.f64","lanes":2}
//! {"seconds":0.061,"bytes_read":1073741824,"peak_rss_bytes":5120000}
//! ```
//! - `floor` reads the file on `lanes` threads and does nothing with it.
//! - `plain` reads it the same way and adds its f64 up, in any order.
//! - `run` asks the runtime; a path that ends in `.grist` is a striped file.
//! - `put` stripes a file over directories.
//! - `ping`, `ask`, `upload`, `download`, `putmany`, `foldmany` ask storage nodes; connections stay for the next command.
//! - `program` is one rank of a parallel program that reads a file of storage nodes into memory and folds it there.
//! - `copies`, `tcp`, `echo`, `feed`, `drain` do without storage nodes what those are measured against.
//!
//! Seconds count from before the file is opened until the answer is there. `peak_rss_bytes` is the largest
//! resident size of this process so far. A command that fails gets `{"error": ...}`, and the next one is read.

mod answer;
mod command;
mod engine;
mod files;
mod nodes;
mod plain;
mod program;
mod rows;
mod scan;
mod socket;

use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;

use answer::Answer;
use command::Command;
use nodes::Clusters;

/// Longest command, in bytes.
const MAX_COMMAND: u64 = 1 << 20;

fn main() -> ExitCode {
    match serve(&mut io::stdin().lock(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gristmill-probe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    let mut clusters = Clusters::default();
    loop {
        line.clear();
        if input.by_ref().take(MAX_COMMAND).read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line.len() as u64 == MAX_COMMAND {
            return Err(io::Error::other(format!("a command is longer than {MAX_COMMAND} bytes")));
        }
        let command = serde_json::from_str(&line).map_err(|e| format!("not a command: {e}"));
        let answered = command.and_then(|command| answer(command, &mut clusters));
        let text = serde_json::to_string(&answered.unwrap_or_else(Answer::failed))?;
        writeln!(output, "{text}")?;
        output.flush()?;
    }
}

fn answer(command: Command, clusters: &mut Clusters) -> Result<Answer, String> {
    match command {
        Command::Floor(scan) => scan::floor(&scan),
        Command::Plain(scan) => scan::plain(&scan),
        Command::Run(run) => engine::run(&run),
        Command::Put(put) => engine::put(&put),
        Command::Ping(ping) => nodes::ping(clusters, &ping),
        Command::Ask(ask) => nodes::ask(clusters, &ask),
        Command::Program(rank) => program::program(clusters, &rank),
        Command::Upload(upload) => nodes::upload(clusters, &upload),
        Command::Download(download) => nodes::download(clusters, &download),
        Command::PutMany(many) => nodes::put_many(clusters, many),
        Command::FoldMany(many) => nodes::fold_many(clusters, &many),
        Command::Copies(copies) => files::copies(&copies),
        Command::Tcp(tcp) => socket::tcp(&tcp),
        Command::Echo(echo) => socket::echo(&echo),
        Command::Feed(feed) => socket::feed(&feed),
        Command::Drain(drain) => socket::drain(&drain),
    }
}
