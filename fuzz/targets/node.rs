//! A whole node: requests of HTTP/1.1 and gRPC as bytes on its Unix socket. A panic anywhere in it ends the run.
#![no_main]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use gristmill_fuzz as _;
use gristmill_server::{Node, NodeOptions};
use libfuzzer_sys::fuzz_target;

/// A node that answers nothing for so long stands still.
const STILL: Duration = Duration::from_secs(5);

unsafe extern "C" {
    safe fn signal(number: i32, handler: usize) -> usize;
}

/// Writing to a connection that the node has closed is an error, not the end; Rust's own `main` says so itself.
fn ignore_broken_pipes() {
    const SIGPIPE: i32 = 13;
    const SIG_IGN: usize = 1;
    signal(SIGPIPE, SIG_IGN);
}

struct Running {
    socket: PathBuf,
    _node: Node,
    _runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

fn node() -> &'static Running {
    static NODE: OnceLock<Running> = OnceLock::new();
    NODE.get_or_init(|| {
        ignore_broken_pipes();
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("node.sock");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let address = format!("unix:{}", socket.display()).parse().expect("an address");
        let options = NodeOptions::entry(&dir.path().join("target"), address);
        let node = runtime.block_on(Node::start(options)).expect("a node");
        Running { socket, _node: node, _runtime: runtime, _dir: dir }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let mut stream = UnixStream::connect(&node().socket).expect("a connection");
    stream.set_read_timeout(Some(STILL)).expect("a timeout");
    stream.set_write_timeout(Some(STILL)).expect("a timeout");
    // The node may have closed the connection after the first bytes.
    if stream.write_all(bytes).is_err() || stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut answer = [0; 4096];
    loop {
        match stream.read(&mut answer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the node stands still"),
            Err(_) => return,
        }
    }
});
