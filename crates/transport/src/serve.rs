//! Accepting connections, as many as are allowed at once, until told to stop. Where all slots are taken, those that
//! are quiet make room.

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::{Serving, serve_connection};
use crate::listener::{Accepting, Listener};
use crate::slot::ConnectionSlots;
use crate::stream::Socket;
use crate::{
    ACCEPT_PAUSE, KEEPALIVE_AFTER, KEEPALIVE_EVERY, KEEPALIVE_TRIES, ONE_MORE, Origin, Result, TransportError,
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
    let mut slots = ConnectionSlots::new(max_connections);
    // A client that was accepted and has no slot yet, and when another connection is told to leave for it.
    let mut next: Option<(Socket, Origin)> = None;
    let mut again = Instant::now();
    let mut shutdown = std::pin::pin!(shutdown);

    loop {
        let full = connections.len() >= max_connections;
        if !full && let Some((socket, origin)) = next.take() {
            let (serving, slot) = (serving.clone(), slots.add(origin));
            connections.spawn(async move { serve_connection(&serving, socket, origin, slot).await });
            again = Instant::now();
            continue;
        }
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            () = one_leaves(&mut slots, again), if next.is_some() => {
                again = Instant::now() + ONE_MORE;
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
                    () = slots.one_is_given_up() => tokio::time::sleep(ACCEPT_PAUSE).await,
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

/// Tells one connection to leave, not before `again`. Cancelling it changes nothing.
async fn one_leaves(slots: &mut ConnectionSlots, again: Instant) {
    tokio::time::sleep_until(again).await;
    slots.one_is_given_up().await;
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
