//! Completions that a shell offers when Tab is pressed: commands and flags from clap, and names that only this program
//! knows: kernels, types, paths on storage nodes.
//!
//! `gristmill completions SHELL` prints a script that asks this program, with [`VARIABLE`] set to the name of the
//! shell.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::builder::{StyledStr, ValueParser};
use clap::{Arg, Command, CommandFactory, value_parser};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompletionCandidate, Shell};
use gristmill_array::Op;
use gristmill_client::{Cluster, ClusterOptions, Location};
use gristmill_kernel::{DType, catalog};

use crate::args::Cli;
use crate::error::CliError;

/// The environment variable that asks for completions instead of running a command.
const VARIABLE: &str = "GRISTMILL_COMPLETE";

const NAME: &str = "gristmill";

/// How long a cluster may take to list a folder. The user waits meanwhile.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// Most paths that are offered.
const MAX_OFFERED: usize = 1000;

/// The script for Bash. Bash splits a word at ':' and '='. The script joins the parts again, and cuts from each answer
/// the typed part that Bash does not replace.
const BASH: &str = r#"_gristmill() {
    local line=${COMP_LINE:0:COMP_POINT} words=() word rest i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        word=${COMP_WORDS[i]}
        word=${word:0:${#rest}}
        if ((i > 0)) && [[ $line == "$rest" ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        line=${rest#"$word"}
    done
    local IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
        GRISTMILL_COMPLETE=bash "${words[0]}" "${words[@]}" 2> /dev/null)) || COMPREPLY=()
    local typed=${words[${#words[@]}-1]} known=
    if [[ $typed == *[:=]* ]]; then
        known=${typed%"${typed##*[:=]}"}
    fi
    COMPREPLY=("${COMPREPLY[@]#"$known"}")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -F _gristmill gristmill
"#;

/// Prints the script that makes a shell ask this program.
pub fn script(shell: Shell) -> Result<ExitCode, CliError> {
    let mut out = Vec::new();
    match Shells::builtins().completer(&shell.to_string()) {
        Some(shell) if shell.name() != "bash" => {
            shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut out).map_err(CliError::Output)?;
        }
        _ => out.extend_from_slice(BASH.as_bytes()),
    }
    io::stdout().write_all(&out).map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}

/// Answers a shell that asks for completions; `None` if no shell asks. The arguments after the first are the words of
/// its command line.
pub fn complete(args: &[OsString]) -> Option<ExitCode> {
    let shell = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
    let shells = Shells::builtins();
    let mut words = args.get(1..).unwrap_or_default();
    // The scripts of clap put `--` before the words.
    if words.first().is_some_and(|word| word == "--") {
        words = &words[1..];
    }
    let mut out = Vec::new();
    let folder = std::env::current_dir().ok();
    let written = shells.completer(&shell).map(|shell| {
        shell.write_complete(&mut command(), words.to_vec(), folder.as_deref(), &mut out)?;
        io::stdout().write_all(&out)
    });
    // A message would appear in the middle of the user's line.
    Some(ExitCode::from(u8::from(!matches!(written, Some(Ok(()))))))
}

/// The command line with a completer for each argument.
fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command.mut_subcommands(|command| {
        let is_kernels = command.get_name() == "kernels";
        command.mut_args(|arg| with_completer(arg, is_kernels))
    })
}

fn with_completer(arg: Arg, is_kernels: bool) -> Arg {
    let located = arg.get_value_parser().type_id() == ValueParser::from(value_parser!(Location)).type_id();
    match (arg.get_id().as_str(), arg.get_long()) {
        ("kernel", _) => arg.add(ArgValueCandidates::new(kernels)),
        ("name", None) if is_kernels => arg.add(ArgValueCandidates::new(kernels)),
        (_, Some("type")) => arg.add(ArgValueCandidates::new(|| words(DType::ALL.map(DType::name)))),
        (_, Some("place")) => arg.add(ArgValueCandidates::new(|| words(["storage", "client", "auto"]))),
        // Both the source and the destination of a copy may be on nodes.
        ("paths" | "destination", None) => arg.add(ArgValueCompleter::new(paths)),
        _ if located => arg.add(ArgValueCompleter::new(paths)),
        _ => arg,
    }
}

fn words<const N: usize>(words: [&'static str; N]) -> Vec<CompletionCandidate> {
    words.into_iter().map(CompletionCandidate::new).collect()
}

/// The kernels, and the further operations on variables.
fn kernels() -> Vec<CompletionCandidate> {
    let mut found: Vec<_> = catalog::BUILT_IN
        .iter()
        .map(|decl| CompletionCandidate::new(decl.name).help(Some(StyledStr::from(decl.summary))))
        .collect();
    let is_variable_only = |name: &&str| catalog::BUILT_IN.iter().all(|decl| decl.name != *name);
    let help = || Some(StyledStr::from("of a variable, with --var"));
    found.extend(
        Op::NAMES
            .into_iter()
            .filter(is_variable_only)
            .map(|name| CompletionCandidate::new(name).help(help())),
    );
    found
}

/// Paths on storage nodes if the word begins a URL, else paths of this machine.
fn paths(typed: &OsStr) -> Vec<CompletionCandidate> {
    let text = typed.to_string_lossy();
    if text.starts_with("grist:") || text.starts_with("grist+unix:") {
        return paths_on_nodes(&text);
    }
    let mut found = PathCompleter::any().complete(typed);
    if !text.is_empty() && "grist://".starts_with(&*text) {
        found.push(CompletionCandidate::new("grist://"));
    }
    found
}

/// Paths of a cluster that begin with `typed`; none if the cluster does not answer in time.
fn paths_on_nodes(typed: &str) -> Vec<CompletionCandidate> {
    const SHORT: &str = "grist:///";
    if typed.len() < SHORT.len() && SHORT.starts_with(typed) && ClusterOptions::from_env(None).is_ok() {
        return vec![CompletionCandidate::new(SHORT)];
    }
    let (sender, found) = mpsc::sync_channel(1);
    let typed = typed.to_owned();
    // If a node does not answer, the thread waits until the program ends.
    let ask = move || sender.send(list(&typed).unwrap_or_default());
    if std::thread::Builder::new().spawn(ask).is_err() {
        return Vec::new();
    }
    found.recv_timeout(LIST_TIMEOUT).unwrap_or_default()
}

fn list(typed: &str) -> Option<Vec<CompletionCandidate>> {
    let (folder, begun) = typed.split_at(typed.rfind('/')? + 1);
    let Ok(Location::Remote(url)) = Location::parse(folder) else { return None };
    let cluster = Cluster::connect(ClusterOptions::from_env(url.entry.as_deref()).ok()?).ok()?;
    let entries = cluster.list(&url.path).ok()?;
    let begins = entries.into_iter().filter(|entry| entry.name.starts_with(begun)).take(MAX_OFFERED);
    let whole = |name: String, directory| format!("{folder}{name}{}", if directory { "/" } else { "" });
    Some(begins.map(|entry| CompletionCandidate::new(whole(entry.name, entry.info.is_none()))).collect())
}
