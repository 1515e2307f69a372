//! Accepting connections, as many as are allowed at once, until told to stop. Where all places are taken, those that
//! say nothing make room.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Weak};

use axum::Router;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::{Newcomer, Serving, serve_connection};
use crate::listener::{Accepting, Listener};
use crate::stream::Socket;
use crate::{
    ACCEPT_PAUSE, KEEPALIVE_AFTER, KEEPALIVE_EVERY, KEEPALIVE_TRIES, Origin, Result, SILENT_WHEN_FULL,
    TransportError,
};

pub(crate) async fn serve(
    listener: Listener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let Listener { address, tls, socket, max_connections, body_silence, senders, grace, trouble } = listener;
    let (stop, stopped) = watch::channel(false);
    let serving = Arc::new(Serving::new(router, tls, body_silence, senders, stopped));
    let mut connections = JoinSet::new();
    let mut silent = Silent { oldest_first: VecDeque::new(), most: max_connections };
    // A client that was accepted and has no place yet, and whether one was freed for it.
    let mut next: Option<(Socket, Origin)> = None;
    let mut freed = false;
    let mut shutdown = std::pin::pin!(shutdown);

    loop {
        let full = connections.len() >= max_connections;
        if !full && let Some((socket, origin)) = next.take() {
            let (serving, newcomer) = (serving.clone(), silent.add());
            connections.spawn(async move { serve_connection(&serving, socket, origin, newcomer).await });
            freed = false;
            continue;
        }
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            () = silent.oldest_leaves(), if next.is_some() && !freed => {
                freed = true;
                continue;
            }
            accepted = accept(&socket), if next.is_none() => accepted,
        };
        match accepted {
            Ok(client) => next = Some(client),
            // The client has given up already; there is nothing to wait for.
            Err(error) if is_about_one_client(&error) => {}
            Err(source) => {
                trouble(TransportError::Accept { address: address.clone(), source });
                // The same error would come again at once. A connection that ends may free what there was none of.
                tokio::select! {
                    () = &mut shutdown => break,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    () = silent.oldest_leaves() => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        }
    }

    drop((socket, next));
    let _ = stop.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(grace, drained).await;
    connections.shutdown().await;
    Ok(())
}

/// Connections that may not have asked anything yet.
struct Silent {
    /// At most twice as many as there are connections.
    oldest_first: VecDeque<Weak<Newcomer>>,
    most: usize,
}

impl Silent {
    fn add(&mut self) -> Arc<Newcomer> {
        if self.oldest_first.len() >= self.most.saturating_mul(2) {
            self.oldest_first.retain(|one| one.upgrade().is_some_and(|one| one.is_silent()));
        }
        let newcomer = Arc::new(Newcomer::new());
        self.oldest_first.push_back(Arc::downgrade(&newcomer));
        newcomer
    }

    /// Sends the oldest of them away, once it has had [`SILENT_WHEN_FULL`] to ask. Cancelling loses nobody.
    async fn oldest_leaves(&mut self) {
        loop {
            let Some(oldest) = self.oldest_first.front() else { return std::future::pending().await };
            if let Some(oldest) = oldest.upgrade().filter(|oldest| oldest.is_silent()) {
                tokio::time::sleep_until(oldest.since + SILENT_WHEN_FULL).await;
                if oldest.send_away() {
                    return;
                }
            }
            self.oldest_first.pop_front();
        }
    }
}

/// Waits for a client. Cancelling loses none.
async fn accept(socket: &Accepting) -> io::Result<(Socket, Origin)> {
    match socket {
        Accepting::Tcp(listener) => {
            let (stream, from) = listener.accept().await?;
            set_up(&stream)?;
            Ok((Socket::Tcp(stream), Origin::Tcp(from.ip().to_canonical())))
        }
        Accepting::Unix { listener, .. } => {
            let (stream, _) = listener.accept().await?;
            let peer = stream.peer_cred()?;
            Ok((Socket::Unix(stream), Origin::Unix { uid: peer.uid(), gid: peer.gid() }))
        }
    }
}

/// Sends without delay, and notices a client whose machine vanished.
fn set_up(stream: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_TRIES);
    let done = stream.set_nodelay(true).and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keepalive));
    match done {
        // A client that is gone already makes this fail.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        done => done,
    }
}

fn is_about_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | NotConnected)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Address;

    #[tokio::test]
    async fn the_system_asks_after_a_machine_that_says_nothing() {
        let any: Address = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(&any, None).await.unwrap();
        let _client = TcpStream::connect(listener.address().to_string()).await.unwrap();
        let (socket, _) = accept(&listener.socket).await.unwrap();
        let Socket::Tcp(stream) = socket else { panic!("not over TCP") };
        let system = SockRef::from(&stream);
        assert!(system.keepalive().unwrap());
        assert_eq!(system.tcp_keepalive_time().unwrap(), KEEPALIVE_AFTER);
        assert_eq!(system.tcp_keepalive_interval().unwrap(), KEEPALIVE_EVERY);
        assert_eq!(system.tcp_keepalive_retries().unwrap(), KEEPALIVE_TRIES);
    }
}
