//! Accepting connections, as many as are allowed at once, until told to stop. Where all places are taken, those that
//! say nothing make room.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Weak};

use axum::Router;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::{Newcomer, Serving, serve_connection};
use crate::listener::{Accepting, Listener};
use crate::stream::Socket;
use crate::{ACCEPT_PAUSE, Origin, Result, SILENT_WHEN_FULL, TransportError};

pub(crate) async fn serve(
    listener: Listener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let Listener { address, tls, socket, max_connections, grace, trouble } = listener;
    let (stop, stopped) = watch::channel(false);
    let serving = Arc::new(Serving::new(router, tls, stopped));
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
            no_delay(&stream)?;
            Ok((Socket::Tcp(stream), Origin::Tcp(from.ip().to_canonical())))
        }
        Accepting::Unix { listener, .. } => {
            let (stream, _) = listener.accept().await?;
            let peer = stream.peer_cred()?;
            Ok((Socket::Unix(stream), Origin::Unix { uid: peer.uid(), gid: peer.gid() }))
        }
    }
}

fn no_delay(stream: &TcpStream) -> io::Result<()> {
    match stream.set_nodelay(true) {
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
