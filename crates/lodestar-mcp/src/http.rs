//! Servers elsewhere, over Streamable HTTP.

use std::collections::BTreeMap;

use tokio::sync::mpsc;

use crate::peer::{Peer, Said};

/// A server elsewhere.
#[derive(Debug)]
pub(crate) struct Remote {}

impl Remote {
    pub(crate) fn new(
        _url: &str,
        _headers_env: &BTreeMap<String, String>,
        _limit: usize,
    ) -> Result<Self, String> {
        Err("servers over HTTP are not spoken to yet".to_owned())
    }

    pub(crate) async fn run(
        self,
        _written: mpsc::Receiver<Vec<u8>>,
        _peer: Peer,
        _heard: mpsc::Sender<Said>,
    ) -> String {
        String::new()
    }
}
