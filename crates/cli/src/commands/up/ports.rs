//! The sockets that nodes listen on. A node keeps its port across starts, because valid grants and the entry node's
//! list of targets name it.

use std::io::{Error, ErrorKind};
use std::net::TcpListener;
use std::path::Path;

use gristmill_store::write_atomic;
use gristmill_transport::{Address, TransportError};

use crate::error::CliError;

/// A socket that listens, and its port.
pub type Listening = (TcpListener, u16);

/// Most connections that wait to be accepted by a node. The standard library's default is lower.
const BACKLOG: i32 = 1024;

/// The file in `--dir`: the ports of the nodes in their order, one per line.
const FILE: &str = "up.ports";

/// Longest such file that is read, in bytes: more than all nodes need.
const MAX_BYTES: u64 = 4096;

/// The sockets of `nodes` nodes of a host. The first socket exists already.
pub fn sockets(dir: &Path, first: Listening, host: &str, nodes: u32) -> Result<Vec<Listening>, CliError> {
    let mut sockets = vec![first];
    let before = read(dir);
    for number in 1..nodes as usize {
        sockets.push(match before.get(number) {
            None => listening(host, 0)?,
            Some(port) => listening(host, *port).or_else(|error| {
                crate::notice(format_args!(
                    "gristmill: node {number} takes another port than before: {error}"
                ));
                listening(host, 0)
            })?,
        });
    }
    Ok(sockets)
}

/// Makes a socket that listens at a port of a host; 0 means a free port.
pub fn listening(host: &str, port: u16) -> Result<Listening, CliError> {
    let address = Address::Tcp { host: host.to_owned(), port };
    let failed = |source: Error| match source.kind() {
        ErrorKind::AddrInUse => TransportError::InUse { address: address.clone() },
        _ => TransportError::Listen { address: address.clone(), source },
    };
    let socket = TcpListener::bind((host, port)).map_err(failed)?;
    rustix::net::listen(&socket, BACKLOG).map_err(|error| failed(error.into()))?;
    let port = socket.local_addr().map_err(failed)?.port();
    Ok((socket, port))
}

/// The last ports of the nodes, as far as they are known. They are only a preference, so errors are ignored.
fn read(dir: &Path) -> Vec<u16> {
    let path = dir.join(FILE);
    match std::fs::metadata(&path) {
        Ok(meta) if meta.is_file() && meta.len() <= MAX_BYTES => {}
        _ => return Vec::new(),
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    text.lines().map_while(|line| line.parse().ok()).collect()
}

/// Writes the ports of the nodes to the file. If that fails, they have other ports next time, and nothing else is lost.
pub fn remember(dir: &Path, ports: &[u16]) {
    let text: String = ports.iter().map(|port| format!("{port}\n")).collect();
    let _ = write_atomic(&dir.join(FILE), text.as_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn ports_are_read_as_they_were_written_and_nonsense_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).is_empty());
        remember(dir.path(), &[7440, 1, 65535]);
        assert_eq!(read(dir.path()), [7440, 1, 65535]);
        std::fs::write(dir.path().join(FILE), "7440\n65536\n12\n").unwrap();
        assert_eq!(read(dir.path()), [7440]);
        std::fs::write(dir.path().join(FILE), "1\n".repeat(5000)).unwrap();
        assert!(read(dir.path()).is_empty());
    }
}
