//! The client side: one dialer for a process, shared by all that talk to nodes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tonic::transport::Channel;

use crate::connect::check;
use crate::pool::Pool;
use crate::{
    ALONE_WINDOW, Address, CONNECT_TIMEOUT, CONNECTION_WINDOW, ClientTls, HttpClient, MAX_ADDRESSES, Result,
    STALL, STREAM_WINDOW,
};

/// How a [`Dialer`] connects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialerOptions {
    /// Used for every TCP address. Without it only [local](Address::is_local) addresses can be dialled.
    pub tls: Option<ClientTls>,
    /// How long connecting may take, TLS included; [`CONNECT_TIMEOUT`] by default.
    pub connect_timeout: Duration,
    /// How long a node may be silent before [`Stalled`](crate::TransportError::Stalled); [`STALL`] by default.
    pub stall: Duration,
}

impl Default for DialerOptions {
    fn default() -> Self {
        Self { tls: None, connect_timeout: CONNECT_TIMEOUT, stall: STALL }
    }
}

/// Keeps connections to nodes. Clones share them. A dialer belongs to the Tokio runtime it is first used in.
#[derive(Clone)]
pub struct Dialer {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub options: Arc<DialerOptions>,
    pub pool: Pool,
    channels: Mutex<HashMap<Address, Channel>>,
}

impl Dialer {
    /// A dialer without connections.
    pub fn new(options: DialerOptions) -> Self {
        let shared = Shared {
            options: Arc::new(options),
            pool: Pool::default(),
            channels: Mutex::new(HashMap::new()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// HTTP/1.1 to this address. Cheap; connections are made when a request needs one and are kept in the
    /// dialer, at most [`MAX_IDLE_PER_ADDRESS`](crate::MAX_IDLE_PER_ADDRESS) unused ones.
    pub fn http(&self, address: &Address) -> HttpClient {
        HttpClient::new(self.clone(), address.clone())
    }

    /// gRPC to this address over a connection of its own, made at the first call: for an answer that may stand still.
    /// All streams of a connection share its window, so one that nobody reads stops the others.
    ///
    /// A [`TransportError`](crate::TransportError) of connecting is among the sources of the `tonic::Status`.
    ///
    /// # Errors
    /// The error is [`NotLocal`](crate::TransportError::NotLocal) if the address is another machine and there is no
    /// TLS, [`NoRuntime`](crate::TransportError::NoRuntime) outside of a Tokio runtime, and
    /// [`BadAddress`](crate::TransportError::BadAddress) if the address does not fit into a URI.
    pub fn channel_alone(&self, address: &Address) -> Result<Channel> {
        check(address, self.shared.options.tls.as_ref())?;
        crate::channel::open(address, &self.shared.options, ALONE_WINDOW, ALONE_WINDOW)
    }

    /// gRPC to this address: one channel for all callers, which connects at the first call and again when
    /// the connection is lost.
    ///
    /// A [`TransportError`](crate::TransportError) of connecting is among the sources of the `tonic::Status`.
    ///
    /// # Errors
    /// It fails as [`channel_alone`](Self::channel_alone) does.
    pub fn channel(&self, address: &Address) -> Result<Channel> {
        check(address, self.shared.options.tls.as_ref())?;
        let mut channels = self.shared.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let channel = crate::channel::open(address, &self.shared.options, STREAM_WINDOW, CONNECTION_WINDOW)?;
        if channels.len() >= MAX_ADDRESSES {
            // Channels in use live on in their users' clones.
            channels.clear();
        }
        channels.insert(address.clone(), channel.clone());
        Ok(channel)
    }
}

impl Default for Dialer {
    fn default() -> Self {
        Self::new(DialerOptions::default())
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("options", &self.shared.options).finish()
    }
}
