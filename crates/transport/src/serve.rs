//! The loop that accepts connections, up to a bound, until it is stopped. If all slots are taken, quiet connections are
//! evicted.

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::{ConnectionContext, serve_connection};
use crate::listener::{ListenSocket, Listener};
use crate::slot::ConnectionSlots;
use crate::stream::Socket;
use crate::{
    ACCEPT_PAUSE, EVICTION_PAUSE, KEEPALIVE_AFTER, KEEPALIVE_EVERY, KEEPALIVE_TRIES, Origin, Result,
    TransportError,
};

pub(crate) async fn serve(
    listener: Listener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let Listener { address, tls, socket, max_connections, body_silence, senders, grace, on_accept_error } =
        listener;
    let (stop, stopped) = watch::channel(false);
    let context = Arc::new(ConnectionContext::new(router, tls, body_silence, senders, stopped));
    let mut connections = JoinSet::new();
    let mut slots = ConnectionSlots::new(max_connections);
    // An accepted client that has no slot yet, and the time of the next eviction for it.
    let mut waiting: Option<(Socket, Origin)> = None;
    let mut next_eviction = Instant::now();
    let mut shutdown = std::pin::pin!(shutdown);

    loop {
        let full = connections.len() >= max_connections;
        if !full && let Some((socket, origin)) = waiting.take() {
            let (context, slot) = (context.clone(), slots.add(origin));
            connections.spawn(async move { serve_connection(&context, socket, origin, slot).await });
            next_eviction = Instant::now();
            continue;
        }
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            () = evict_one_at(&mut slots, next_eviction), if waiting.is_some() => {
                next_eviction = Instant::now() + EVICTION_PAUSE;
                continue;
            }
            accepted = accept(&socket), if waiting.is_none() => accepted,
        };
        match accepted {
            Ok(client) => waiting = Some(client),
            // The client has gone already, so the next one can be accepted at once.
            Err(error) if is_about_one_client(&error) => {}
            Err(source) => {
                on_accept_error(TransportError::Accept { address: address.clone(), source });
                // The same error would come again at once. The end of a connection may free the missing resource.
                tokio::select! {
                    () = &mut shutdown => break,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    () = slots.evict_one() => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        }
    }

    drop((socket, waiting));
    let _ = stop.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(grace, drained).await;
    connections.shutdown().await;
    Ok(())
}

/// Evicts one connection, not before `time`. Cancelling changes nothing.
async fn evict_one_at(slots: &mut ConnectionSlots, time: Instant) {
    tokio::time::sleep_until(time).await;
    slots.evict_one().await;
}

/// Waits for a client. Cancelling loses no client.
async fn accept(socket: &ListenSocket) -> io::Result<(Socket, Origin)> {
    match socket {
        ListenSocket::Tcp(listener) => {
            let (stream, from) = listener.accept().await?;
            set_options(&stream)?;
            Ok((Socket::Tcp(stream), Origin::Tcp(from.ip().to_canonical())))
        }
        ListenSocket::Unix { listener, .. } => {
            let (stream, _) = listener.accept().await?;
            let peer = stream.peer_cred()?;
            Ok((Socket::Unix(stream), Origin::Unix { uid: peer.uid(), gid: peer.gid() }))
        }
    }
}

/// Makes the socket send without delay and detect a client whose machine vanished.
fn set_options(stream: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_TRIES);
    let done = stream.set_nodelay(true).and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keepalive));
    match done {
        // The system refuses the options if the client has gone already.
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
    async fn the_system_probes_a_silent_machine() {
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
