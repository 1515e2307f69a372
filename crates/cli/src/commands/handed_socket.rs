//! The socket that a node listens on, made by `up` and handed to each process of the node: so nobody else can take the port
//! while the node is started again, and those who connect meanwhile wait.
//!
//! It comes over a pair of Unix sockets, of which the node has one end as its standard input. That end stays open as long as
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

/// The bytes of the message that carries the socket: a message without bytes carries none.
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

/// Takes the socket that was handed over; `None` if the other end is gone, or hands over none because it is a pipe.
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
