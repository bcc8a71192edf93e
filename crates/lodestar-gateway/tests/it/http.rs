//! The gateway over HTTP: real requests, real signatures, both databases.

mod anything;
mod devices;
mod forms;
mod limits;
mod runs;
mod work;
