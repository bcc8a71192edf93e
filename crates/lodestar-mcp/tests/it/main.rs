//! The proxy against real peers.

mod http;
