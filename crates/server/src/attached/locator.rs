//! A program of the administrator that tells on which hosts the bytes of a file of a mount lie.
//!
//! File systems tell this in ways of their own, and only the administrator knows which storage host runs which node. So the
//! node starts a program (`--locate`), and asks it for each file of a mount that is opened. The program runs as long as the
//! node. A question is a line of JSON on its standard input, and the answer is a line of JSON on its standard output:
//!
//! ```text
//! {"path":"/lustre/era5/t2m.nc","length":73400320}
//! {"components":[{"end":1048576,"unit":1048576,"hosts":["oss0"]},{"unit":4194304,"hosts":["oss1","oss2"]}]}
//! ```
//!
//! Answers save reads over a network. A wrong one costs time, but changes no result, because every node reads the file where
//! it lies. So a program that is slow or fails is left out for a while, and the files are dealt to all nodes in turn.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Instant;

use gristmill_backend::HostStripes;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};

use crate::ServerError;
use crate::limits::{LOCATE_AGAIN, LOCATE_TIME, MAX_LOCATE_LINE, MAX_LOCATE_WAITING};

/// An answer of the program. Without components it is not known where the file lies.
#[derive(Deserialize)]
struct Located {
    /// Ranges of the file, in their order.
    #[serde(default)]
    components: Vec<Component>,
}

/// A range of a file whose stripes lie on hosts.
#[derive(Deserialize)]
struct Component {
    /// The first byte behind it. Without it the range ends with the file.
    #[serde(default)]
    end: Option<u64>,
    /// Bytes of a stripe.
    unit: u64,
    /// Names or addresses of hosts, as nodes have them in `--advertise`, with or without the port.
    hosts: Vec<String>,
}

impl From<Component> for HostStripes {
    fn from(Component { end, unit, hosts }: Component) -> HostStripes {
        HostStripes { end, unit, hosts: hosts.into_iter().map(|host| [host].into()).collect() }
    }
}

#[derive(Serialize)]
struct FileToLocate<'a> {
    path: &'a str,
    length: u64,
}

struct Question {
    line: String,
    until: Instant,
    answer: SyncSender<Vec<HostStripes>>,
}

/// Asks the program. It ends with this value.
pub(crate) struct Locator {
    questions: SyncSender<Question>,
}

impl Locator {
    /// Starts the thread that asks. The program is started with the first question.
    ///
    /// # Errors
    /// The error is a usage error if there is no such program. It also fails if the thread cannot be started.
    pub fn start(program: &Path) -> Result<Locator, ServerError> {
        let usage = |why: String| {
            ServerError::Usage(format!("{} (--locate): {why}; name a program", program.display()))
        };
        // A node may change its directory.
        let path = std::path::absolute(program).map_err(|error| usage(error.to_string()))?;
        let meta = path.metadata().map_err(|error| usage(error.to_string()))?;
        if !meta.is_file() || meta.mode() & 0o111 == 0 {
            return Err(usage("it cannot be executed".to_owned()));
        }
        let (questions, asked) = sync_channel(MAX_LOCATE_WAITING);
        let thread = std::thread::Builder::new().name("locator".into());
        thread.spawn(move || answer(path, asked)).map_err(|source| ServerError::Thread { source })?;
        Ok(Locator { questions })
    }

    /// Where a file of this length lies, if that is known before `until`. Blocks.
    pub fn locate(&self, path: &str, length: u64, until: Instant) -> Option<Vec<HostStripes>> {
        let line = serde_json::to_string(&FileToLocate { path, length }).ok()?;
        let (answer, answered) = sync_channel(1);
        match self.questions.try_send(Question { line, until, answer }) {
            Ok(()) => answered.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

/// Answers questions until there is nobody who asks.
fn answer(path: PathBuf, questions: Receiver<Question>) {
    let (mut program, mut failed): (Option<Program>, Option<Instant>) = (None, None);
    for question in questions {
        let rests = failed.is_some_and(|at| at.elapsed() < LOCATE_AGAIN);
        if rests || question.until <= Instant::now() {
            continue;
        }
        // It may have ended while nobody asked, for example to read its tables again.
        let known = program.take().filter(|running| !running.has_ended());
        let mut running = match known {
            Some(running) => Ok(running),
            None => Program::start(&path).map_err(|error| error.to_string()),
        };
        match running.as_mut().map_err(|why| why.clone()).and_then(|running| running.ask(&question.line)) {
            Ok(located) => {
                (program, failed) = (running.ok(), None);
                // Whoever asked may not wait any more.
                let _ = question.answer.try_send(located);
            }
            Err(why) => {
                failed = Some(Instant::now());
                // A program in a call of a file system that hangs cannot be killed. Nobody waits for its end here.
                let _ = std::thread::Builder::new().name("locator-end".into()).spawn(move || drop(running));
                // If the log cannot be written, only this line is lost.
                let _ = writeln!(
                    io::stderr(),
                    "gristmill: {} (--locate): {why}; for {} s files of mounts are dealt to all nodes in turn",
                    path.display(),
                    LOCATE_AGAIN.as_secs()
                );
            }
        }
    }
}

/// The running program. It is killed with this value.
struct Program {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Result<String, String>>,
}

impl Program {
    fn start(path: &Path) -> io::Result<Program> {
        let mut command = Command::new(path);
        // The environment of a node has secrets.
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir("/").process_group(0);
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        if let Some(input) = &input {
            let flags = rustix::fs::fcntl_getfl(input)?;
            rustix::fs::fcntl_setfl(input, flags | rustix::fs::OFlags::NONBLOCK)?;
        }
        let (sender, lines) = sync_channel(1);
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let program = Program { child, input, lines };
        let thread = std::thread::Builder::new().name("locator-lines".into());
        thread.spawn(move || send_lines(BufReader::new(output), &sender))?;
        Ok(program)
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Whether it has ended. It is not waited for, so no other process gets its number before it is dropped.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.pid().is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), look), Ok(None)))
    }

    fn ask(&mut self, line: &str) -> Result<Vec<HostStripes>, String> {
        if self.lines.try_recv().is_ok() {
            return Err("it ended, or wrote a line that was not asked for".to_owned());
        }
        // One question waits at a time, and is shorter than a pipe holds. So the pipe has room, if the program reads.
        let written = self.input.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| format!("it takes no question: {error}"))?;
        let line = self.lines.recv_timeout(LOCATE_TIME).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("it did not answer within {} s", LOCATE_TIME.as_secs()),
            RecvTimeoutError::Disconnected => "it ended".to_owned(),
        })??;
        parse(&line)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(group) = self.pid() {
            // It may have ended by itself. It is not waited for yet, so no other process has its number.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Sends the lines of the program, until it ends or writes one that is too long.
fn send_lines(mut output: impl BufRead, sender: &SyncSender<Result<String, String>>) {
    loop {
        let mut line = String::new();
        let read = (&mut output).take(MAX_LOCATE_LINE + 1).read_line(&mut line);
        let line = match read {
            Ok(0) => Err("it ended".to_owned()),
            Ok(bytes) if bytes as u64 > MAX_LOCATE_LINE => {
                Err(format!("its answer is longer than {MAX_LOCATE_LINE} bytes"))
            }
            Ok(_) => Ok(line),
            Err(error) => Err(format!("its answer cannot be read: {error}")),
        };
        let is_last = line.is_err();
        if sender.send(line).is_err() || is_last {
            return;
        }
    }
}

/// Reads an answer.
///
/// # Errors
/// It fails if the line is no answer.
fn parse(line: &str) -> Result<Vec<HostStripes>, String> {
    let located: Located =
        serde_json::from_str(line).map_err(|error| format!("its answer is malformed: {error}"))?;
    Ok(located.components.into_iter().map(HostStripes::from).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    /// A locator whose program is this script.
    fn locator(folder: &Path, script: &str) -> Locator {
        let path = folder.join("locate");
        // Another process writes it. A program that is started meanwhile would hold a file of this one open, and it could not run.
        let mut write = Command::new("sh");
        write.args(["-c", "printf '#!/bin/sh\n%s\n' \"$1\" > \"$2\" && chmod 700 \"$2\"", "sh", script]);
        assert!(write.arg(&path).status().unwrap().success());
        Locator::start(&path).unwrap()
    }

    fn located(locator: &Locator, path: &str) -> Option<Vec<HostStripes>> {
        locator.locate(path, 7, Instant::now() + Duration::from_secs(60))
    }

    #[test]
    fn one_program_answers_all_questions() {
        let folder = tempfile::tempdir().unwrap();
        let script = r#"n=0; while read -r line; do n=$((n+1)); printf '{"components":[{"unit":%s,"hosts":["%s"]}]}\n' $n "$(printf '%s' "$line" | tr -d '"{}')"; done"#;
        let locator = locator(folder.path(), script);
        for n in 1..4 {
            let hosts = vec![[format!("path:/a b{n},length:7")].into()];
            assert_eq!(
                located(&locator, &format!("/a b{n}")),
                Some(vec![HostStripes { end: None, unit: n, hosts }])
            );
        }
        assert_eq!(locator.locate("/late", 7, Instant::now()), None);
    }

    #[test]
    fn a_program_that_fails_rests() {
        for script in [
            "exit 3",
            "read line; echo '{'",
            "read line; exec head -c 2000000 /dev/zero",
            "read line; printf '\\377\\n'; sleep 60",
            "echo '{}'; echo '{}'; while read line; do :; done",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let counted = format!("echo >> {}/runs\n{script}", folder.path().display());
            let locator = locator(folder.path(), &counted);
            // The last one has two answers before it is asked, and no more.
            let found: Vec<_> = (0..4).map(|_| located(&locator, "/x")).collect();
            assert!(found.iter().skip(2).all(Option::is_none), "{script}: {found:?}");
            assert_eq!(std::fs::read_to_string(folder.path().join("runs")).unwrap(), "\n", "{script}");
        }
        assert!(Locator::start(Path::new("/nothing/there")).is_err());
    }

    #[test]
    fn a_program_ends_with_the_locator() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo $$ > \"$(dirname \"$0\")/pid\"; while read -r line; do echo '{}'; done; sleep 600";
        let locator = locator(folder.path(), script);
        assert_eq!(located(&locator, "/x"), Some(vec![]));
        let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        drop(locator);
        let proc = PathBuf::from(format!("/proc/{}", pid.trim()));
        let begun = Instant::now();
        while proc.exists() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert!(!proc.exists());
    }

    #[test]
    fn malformed_answers_are_refused() {
        assert!(parse("{\"components\":[{\"unit\":-1,\"hosts\":[]}]}").is_err());
        assert_eq!(parse("{\"more\": 1}"), Ok(vec![]));
    }
}
