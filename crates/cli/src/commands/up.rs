//! `gristmill up`: a cluster on this machine with supervised nodes.

mod background;
mod node_directories;
mod ports;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use gristmill_runtime::whole_cores;
use gristmill_server::RadosLocation;
use gristmill_transport::Address;

use crate::SELF_COMMAND;
use crate::args::{NodeArgs, UpArgs};
use crate::commands::handed_socket;
use crate::error::CliError;

/// How long a node may take to start, since its last report that it recovers its store.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long nodes may take to stop before they are killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Pause before a node that died is started again. It is doubled each time, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// After this time a node counts as healthy, and its pause is reset.
const HEALTHY: Duration = Duration::from_secs(10);

/// Time between two checks of the nodes.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A node with its socket and its process.
struct SupervisedNode {
    number: u32,
    target: PathBuf,
    /// Where it keeps its objects, if that is not the directory of the target.
    objects: Option<RadosLocation>,
    /// The address that the node listens on. The socket stays open here while the node is started again: grants name
    /// its port, and nobody else may take it.
    listen: String,
    socket: TcpListener,
    child: Option<Running>,
    pause: Duration,
    start_at: Instant,
}

struct Running {
    child: Child,
    // The node stops when this closes.
    _input: Option<UnixStream>,
    lines: Receiver<String>,
    begun: Instant,
    /// Time of its last line.
    last_line: Instant,
    ready: bool,
}

/// Starts the nodes and supervises them until a signal. `words` are the words of the command line.
pub fn up(args: &UpArgs, words: &[OsString]) -> Result<ExitCode, CliError> {
    let Address::Tcp { host, port } = &args.listen else {
        return Err(CliError::Usage(
            "--listen takes HOST:PORT; give a Unix socket with --socket beside it".into(),
        ));
    };
    node_directories::check(&args.dir, args.nodes)?;
    // First, before anything is written to the directory.
    let first = ports::listening(host, *port)?;
    if args.wait {
        drop(first);
        return background::up(args, words);
    }
    let sockets = ports::sockets(&args.dir, first, host, args.nodes)?;
    let ports: Vec<u16> = sockets.iter().map(|(_, port)| *port).collect();
    let (stop, stopped) = channel();
    listen_for_stop(stop)?;
    let mut nodes: Vec<SupervisedNode> = (0..args.nodes)
        .zip(sockets)
        .map(|(number, (socket, port))| SupervisedNode {
            number,
            target: node_directories::target(&args.dir, number),
            objects: args
                .objects
                .as_ref()
                .map(|place| RadosLocation { name: format!("{}.node{number}", place.name), ..place.clone() }),
            listen: Address::Tcp { host: host.clone(), port }.to_string(),
            socket,
            child: None,
            pause: FIRST_PAUSE,
            start_at: Instant::now(),
        })
        .collect();
    let cores = whole_cores();
    let lanes = args.shared.lanes.unwrap_or_else(|| (cores / args.nodes as usize).max(1));
    let shared = NodeArgs { lanes: Some(lanes), ..args.shared.clone() };
    let result = start_all(&mut nodes, &shared, &stopped).and_then(|started| {
        if !started {
            return Ok(());
        }
        ports::remember(&args.dir, &ports);
        let entry = nodes.first().map_or("", |node| &node.listen);
        let plural = if args.nodes == 1 { "" } else { "s" };
        let text = format!("{} storage node{plural}; files are at grist://{entry}/", args.nodes);
        // The parent process may have closed the output.
        let _ = writeln!(std::io::stdout(), "{text}");
        if let Some(socket) = &shared.socket {
            let _ = writeln!(std::io::stdout(), "and at grist+unix://{}:/", socket.display());
        }
        supervise(&mut nodes, &shared, &stopped)
    });
    stop_all(&mut nodes);
    result.map(|()| ExitCode::SUCCESS)
}

fn listen_for_stop(stop: Sender<()>) -> Result<(), CliError> {
    let handler = ctrlc::set_handler(move || {
        // Fails only if we are stopping already.
        let _ = stop.send(());
    });
    handler.map_err(|e| CliError::System(format!("cannot listen for signals: {e}")))
}

/// Starts every node once; false if a signal came meanwhile.
fn start_all(
    nodes: &mut [SupervisedNode],
    shared: &NodeArgs,
    stopped: &Receiver<()>,
) -> Result<bool, CliError> {
    let mut entry: Option<(String, PathBuf)> = None;
    let expected = nodes.len();
    for node in nodes {
        node.start(entry.as_ref(), shared, Some(expected))?;
        while !node.listening()? {
            if stopped.recv_timeout(CHECK_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return Ok(false);
            }
            if node.since_last_line() > START_TIMEOUT {
                return Err(CliError::System(format!("node {} did not start in time", node.number)));
            }
        }
        entry.get_or_insert_with(|| (node.listen.clone(), key_path(&node.target)));
    }
    Ok(true)
}

fn key_path(target: &Path) -> PathBuf {
    target.join("cluster.key")
}

/// Restarts nodes that die, until a signal.
fn supervise(
    nodes: &mut [SupervisedNode],
    shared: &NodeArgs,
    stopped: &Receiver<()>,
) -> Result<(), CliError> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let entry = (first.listen.clone(), key_path(&first.target));
    while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        for node in &mut *nodes {
            node.check();
            if node.child.is_none() && Instant::now() >= node.start_at {
                let entry = (node.number > 0).then_some(&entry);
                if let Err(error) = node.start(entry, shared, None) {
                    crate::notice(format_args!("gristmill: node {} cannot be started: {error}", node.number));
                    node.wait_longer();
                }
            }
        }
    }
    Ok(())
}

fn stop_all(nodes: &mut [SupervisedNode]) {
    let mut children: Vec<Running> = nodes.iter_mut().filter_map(|node| node.child.take()).collect();
    for running in &mut children {
        running._input = None;
    }
    let begun = Instant::now();
    for mut running in children {
        while begun.elapsed() < STOP_TIMEOUT && matches!(running.child.try_wait(), Ok(None)) {
            std::thread::park_timeout(CHECK_INTERVAL);
        }
        // Fails only if the process has ended.
        let _ = running.child.kill();
        let _ = running.child.wait();
    }
}

impl SupervisedNode {
    /// Starts the node. `expected` is the number of nodes that are being started; the entry node waits for all of them
    /// before it opens files.
    fn start(
        &mut self,
        entry: Option<&(String, PathBuf)>,
        shared: &NodeArgs,
        expected: Option<usize>,
    ) -> Result<(), CliError> {
        let (program, mut command) = self_command()?;
        command.arg("serve").arg("--supervised");
        command.arg("--target").arg(&self.target).arg("--listen").arg(&self.listen);
        if let Some(objects) = &self.objects {
            command.arg("--objects").arg(objects.to_string());
        }
        match entry {
            Some((address, key)) => {
                command.arg("--join").arg(address).arg("--key").arg(key);
            }
            None => {
                if let Some(expected) = expected {
                    command.arg("--expect").arg(expected.to_string());
                }
            }
        }
        command.args(shared.arguments(entry.is_none()));
        let failed = |source| CliError::File { verb: "start", path: PathBuf::from(program), source };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped());
        own_group(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        // If the node has ended already, its own message says why.
        let _ = handed_socket::send(&ours, &self.socket);
        drop(command);
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let begun = Instant::now();
        self.child =
            Some(Running { child, _input: Some(ours), lines, begun, last_line: begun, ready: false });
        Ok(())
    }

    /// Whether the node listens.
    ///
    /// # Errors
    /// Returns an error if the node has ended.
    fn listening(&mut self) -> Result<bool, CliError> {
        self.read_lines();
        let Some(running) = &mut self.child else { return Ok(false) };
        if running.ready {
            return Ok(true);
        }
        if let Ok(Some(status)) = running.child.try_wait() {
            return Err(CliError::Usage(format!(
                "node {} did not start ({status}); its own message says why",
                self.number
            )));
        }
        Ok(false)
    }

    /// Time since its last line.
    fn since_last_line(&self) -> Duration {
        self.child.as_ref().map_or(Duration::ZERO, |running| running.last_line.elapsed())
    }

    /// Reads its lines: the address that it listens on, or reports of a recovery.
    fn read_lines(&mut self) {
        let Some(running) = &mut self.child else { return };
        while let Ok(line) = running.lines.try_recv() {
            running.last_line = Instant::now();
            if let Some(rest) = line.strip_prefix("listening on ") {
                self.listen = rest.split(' ').next().unwrap_or(rest).to_owned();
                running.ready = true;
            }
        }
    }

    /// Reads its lines, and notices if it ended.
    fn check(&mut self) {
        self.read_lines();
        let Some(running) = &mut self.child else { return };
        if let Ok(Some(status)) = running.child.try_wait() {
            crate::notice(format_args!(
                "gristmill: node {} ended ({status}); it is started again",
                self.number
            ));
            if running.begun.elapsed() > HEALTHY {
                self.pause = FIRST_PAUSE;
            }
            self.child = None;
            self.wait_longer();
        }
    }

    fn wait_longer(&mut self) {
        self.start_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// The command that starts this program again, without arguments.
fn self_command() -> Result<(&'static OsString, Command), CliError> {
    let words = SELF_COMMAND.get().map(Vec::as_slice).unwrap_or_default();
    let Some((program, before)) = words.split_first() else {
        return Err(CliError::Internal { what: "the program does not know its own name" });
    };
    let mut command = Command::new(program);
    command.args(before);
    Ok((program, command))
}

/// Puts a node in its own process group, so that Ctrl-C in a terminal goes to this process only, which stops the nodes.
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}
