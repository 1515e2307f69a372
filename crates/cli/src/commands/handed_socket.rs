//! Hand-over of the socket that a node listens on. `up` makes it and hands it to each process of the node. So nobody
//! else can take the port while the node is started again, and clients that connect meanwhile wait.
//!
//! The socket is sent over a pair of Unix sockets. One end is the standard input of the node. It stays open as long as
//! `up` runs.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The bytes of the message that carries the socket. A message without bytes cannot carry one.
const WORD: &[u8] = b"listen";

/// Hands a socket over.
pub fn send(to: impl AsFd, socket: &TcpListener) -> Result<()> {
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(to, &[IoSlice::new(WORD)], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// Receives the socket; `None` if the other end is closed, or if `from` is a pipe.
pub fn receive(from: BorrowedFd<'_>) -> Result<Option<TcpListener>> {
    let mut word = [0; WORD.len()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    match recvmsg(from, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC) {
        Err(Errno::NOTSOCK) => return Ok(None),
        received => received?,
    };
    let socket = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    Ok(socket.map(|socket: OwnedFd| TcpListener::from(socket)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_goes_to_another_process_and_stays_here() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        send(&ours, &socket).unwrap();
        let received = receive(theirs.as_fd()).unwrap().unwrap();
        let client = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        assert_eq!(received.accept().unwrap().1, client.local_addr().unwrap());
        drop(ours);
        assert!(receive(theirs.as_fd()).unwrap().is_none());
    }
}
