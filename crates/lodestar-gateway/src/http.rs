//! The service as it is reached: routes, tokens, limits.
//!
//! Two faces. The public one listens where the configuration says, on this machine unless told otherwise, and
//! knows whoever shows a token. The platform's is a socket in the service's own folder: it knows its user by
//! the operating system's word, has the routes that no token opens, and is nowhere else.

mod body;
mod limits;
mod read;
mod request;
mod route;
mod serve;
mod table;

pub use route::{Face, Route, Takes, Who};
pub use serve::{BindError, SOCKET, ServeError, Server, serve};
pub use table::routes;

pub(crate) use body::Pieces;
pub(crate) use route::MOST;
