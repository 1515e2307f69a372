//! `gristmill serve`: one storage node.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use gristmill_server::limits::MAX_BLOCKING_THREADS;
use gristmill_server::{Node, NodeObjects, NodeOptions};
use gristmill_store::RecoveryProgress;
use gristmill_transport::Address;
use rustix::fs::Mode;
use tokio::sync::{mpsc, watch};

use crate::args::ServeArgs;
use crate::commands::handed_socket;
use crate::error::CliError;

/// Threads that drive connections; folds have their own.
const NETWORK_THREADS: usize = 2;

/// How long a node tries to join before it prints what it waits for.
const WAIT_NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Time between two reports of a node that recovers its store to its supervisor.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Number of reports between two messages for people.
const REPORTS_PER_NOTICE: u32 = 10;

/// The line of such a report. The supervisor waits as long as it comes.
const RECOVERING: &str = "recovering";

/// Runs a node until a signal, or its supervisor, stops it.
pub fn serve(args: &ServeArgs) -> Result<ExitCode, CliError> {
    // The files of a node are private to its user, whatever the inherited umask is.
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let (stop, mut stopped) = mpsc::channel::<()>(1);
    let on_signal = stop.clone();
    let handler = ctrlc::set_handler(move || {
        // One stop is enough.
        let _ = on_signal.try_send(());
    });
    handler.map_err(|e| CliError::System(format!("cannot listen for signals: {e}")))?;
    let mut options = options(args)?;
    let (recovery, recovers) = watch::channel(None);
    options.recovery = Some(recovery);
    if args.supervised {
        let handed = handed_socket::receive(std::io::stdin().as_fd());
        options.handed =
            handed.map_err(|e| CliError::System(format!("no socket was handed over: {e}")))?.map(Arc::new);
        // The supervisor has the other end, which closes when the supervisor ends in any way.
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            let mut input = std::io::stdin().lock();
            while input.read(&mut buffer).is_ok_and(|read| read > 0) {}
            let _ = stop.try_send(());
        });
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(NETWORK_THREADS)
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|e| CliError::System(format!("cannot start threads: {e}; raise the limit on threads")))?;
    let served = runtime.block_on(async {
        let awaited = options.join.as_ref().map(|entry| format!("the entry node at {entry}"));
        let registered = options.registry.as_ref().map(|place| format!("Ceph, or the entry node of {place}"));
        let awaited = awaited.or(registered);
        let before = recovers.clone();
        let waits = async move {
            tokio::time::sleep(WAIT_NOTICE_DELAY).await;
            if let Some(awaited) = awaited.filter(|_| before.borrow().is_none()) {
                crate::notice(format_args!("gristmill: waiting for {awaited}"));
            }
            std::future::pending::<()>().await;
        };
        let node = tokio::select! {
            node = Node::start(options) => node?,
            _ = stopped.recv() => return Ok(ExitCode::SUCCESS),
            () = waits => return Ok(ExitCode::SUCCESS),
            () = report_recovery(recovers) => return Ok(ExitCode::SUCCESS),
        };
        if let Some(notice) = node.notice() {
            crate::notice(format_args!("gristmill: {notice}"));
        }
        let number = node.number().map_or_else(String::new, |number| format!(" as target {number}"));
        // The parent process may have closed the output.
        let _ = writeln!(std::io::stdout(), "listening on {}{number}", node.address());
        stopped.recv().await;
        node.stop().await?;
        Ok(ExitCode::SUCCESS)
    });
    // Abandoned folds may still use the runtime to ask neighbours. They end with the process.
    std::mem::forget(runtime);
    served
}

/// Reports the progress of the recovery of the store while there is one. Never returns.
async fn report_recovery(mut recovers: watch::Receiver<Option<RecoveryProgress>>) {
    for turn in 0u32.. {
        tokio::time::sleep(REPORT_INTERVAL).await;
        if !recovers.has_changed().unwrap_or(false) {
            continue;
        }
        let Some(RecoveryProgress { objects, folders: (done, all) }) = *recovers.borrow_and_update() else {
            continue;
        };
        // The parent process may have closed the output.
        let _ = writeln!(std::io::stdout(), "{RECOVERING}");
        if turn % REPORTS_PER_NOTICE == 0 {
            let folders = if all > 0 { format!(", {done} of {all} folders") } else { String::new() };
            crate::notice(format_args!(
                "gristmill: the store is being recovered after it was not closed: {objects} objects{folders}"
            ));
        }
    }
}

fn options(args: &ServeArgs) -> Result<NodeOptions, CliError> {
    let shared = &args.shared;
    Ok(NodeOptions {
        target: args.target.clone(),
        listen: args.listen.clone(),
        socket: shared.socket.clone(),
        join: args.join.as_ref().map(Address::to_string),
        registry: args.ceph.clone(),
        key: args.key.clone(),
        tls: shared.cert.clone().zip(shared.tls_key.clone()),
        ca: shared.ca.clone(),
        tokens: shared.tokens.clone(),
        source_users: shared.source_users.clone(),
        lanes: shared.lanes,
        advertise: args.advertise.as_ref().map(Address::to_string),
        require_identity: shared.require_identity,
        admin: shared.admin.clone(),
        active_share: shared.active_share,
        active_priority: shared.active_priority,
        link: shared.link.map(|link| link.0),
        chunk_memory: shared.chunk_memory.map(|memory| memory.0),
        objective: shared.objective,
        outside_sources: shared.outside_sources,
        outside_cache: shared.outside_cache.map(|size| size.0),
        nearest_endpoints: shared.nearest_endpoint.clone(),
        mount_users: shared.mount_users.clone(),
        locate: shared.locate.clone(),
        objects: match (&args.objects, args.without_store) {
            (Some(location), _) => NodeObjects::Ceph(location.clone()),
            (None, true) => NodeObjects::None,
            (None, false) => NodeObjects::Directory,
        },
        statistics: !shared.no_statistics,
        handed: None,
        recovery: None,
        expect: args.expect,
    })
}
