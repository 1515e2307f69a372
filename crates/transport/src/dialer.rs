//! The client side: a process has one dialer for all its connections to nodes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tonic::transport::Channel;

use crate::connect::require_tls;
use crate::pool::Pool;
use crate::{
    Address, CONNECT_TIMEOUT, CONNECTION_WINDOW, ClientTls, DEDICATED_WINDOW, HttpClient, MAX_ADDRESSES,
    Result, STALL, STREAM_WINDOW,
};

/// Options of a [`Dialer`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialerOptions {
    /// TLS for all TCP addresses. Without it only [local](Address::is_local) addresses can be dialled.
    pub tls: Option<ClientTls>,
    /// How long a connection may take, TLS included; [`CONNECT_TIMEOUT`] by default.
    pub connect_timeout: Duration,
    /// How long a node may be silent before [`Stalled`](crate::TransportError::Stalled); [`STALL`] by default.
    pub stall: Duration,
}

impl Default for DialerOptions {
    fn default() -> Self {
        Self { tls: None, connect_timeout: CONNECT_TIMEOUT, stall: STALL }
    }
}

/// A cache of connections to nodes. Clones share it. A dialer belongs to the Tokio runtime in which it is first used.
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

    /// An HTTP/1.1 client for this address. The call is cheap. A connection is made when a request needs one, and the
    /// dialer keeps at most [`MAX_IDLE_PER_ADDRESS`](crate::MAX_IDLE_PER_ADDRESS) unused ones.
    pub fn http(&self, address: &Address) -> HttpClient {
        HttpClient::new(self.clone(), address.clone())
    }

    /// A gRPC channel to this address with a dedicated connection, which is made at the first call. It is for an answer
    /// whose reader may pause: all streams of a connection share its window, so an unread stream stops the others.
    ///
    /// A [`TransportError`](crate::TransportError) of connecting is among the sources of the `tonic::Status`.
    ///
    /// # Errors
    /// The error is [`NotLocal`](crate::TransportError::NotLocal) if the address is another machine and there is no
    /// TLS, [`NoRuntime`](crate::TransportError::NoRuntime) outside of a Tokio runtime, and
    /// [`BadAddress`](crate::TransportError::BadAddress) if the address does not fit into a URI.
    pub fn dedicated_channel(&self, address: &Address) -> Result<Channel> {
        require_tls(address, self.shared.options.tls.as_ref())?;
        crate::channel::open(address, &self.shared.options, DEDICATED_WINDOW, DEDICATED_WINDOW)
    }

    /// The gRPC channel to this address. All callers share it. It connects at the first call, and again when the
    /// connection is lost.
    ///
    /// A [`TransportError`](crate::TransportError) of connecting is among the sources of the `tonic::Status`.
    ///
    /// # Errors
    /// It fails as [`dedicated_channel`](Self::dedicated_channel) does.
    pub fn channel(&self, address: &Address) -> Result<Channel> {
        require_tls(address, self.shared.options.tls.as_ref())?;
        let mut channels = self.shared.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let channel = crate::channel::open(address, &self.shared.options, STREAM_WINDOW, CONNECTION_WINDOW)?;
        if channels.len() >= MAX_ADDRESSES {
            // The users of a channel have clones of it, which stay usable.
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
