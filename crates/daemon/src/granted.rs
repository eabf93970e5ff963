// SPDX-License-Identifier: Apache-2.0
//! What a client has without a PIN, and the end of that.

use metaslot_wiring::config::ClientConfig;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a client has been given without a PIN, as long as it has it: where that is taken away, its connection ends.
#[derive(Debug)]
pub struct Granted {
    pub(crate) sections: Vec<ClientConfig>,
    stream: Arc<UnixStream>,
    /// Who asks through memory that it shares does not come to the end of the stream.
    has_ended: AtomicBool,
}

impl Granted {
    /// To the client whose connection this is.
    pub(crate) fn of(sections: Vec<ClientConfig>, stream: Arc<UnixStream>) -> Self {
        Self { sections, stream, has_ended: AtomicBool::new(false) }
    }

    /// Takes it away.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.stream.shutdown(Shutdown::Both).ok();
    }

    /// Whether it was taken away, so that nothing the client asks is answered any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}
