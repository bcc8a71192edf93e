//! The gateway: devices that earn trust, runs that are proved.
//!
//! One service is the authority for levels; a device is the authority for its key. What raises anything is a
//! signature that the service verified and facts that it derived itself.
//!
//! | module | what it does |
//! |---|---|
//! | [`store`] | accounts, devices, runs and what became of them, in SQLite or PostgreSQL, which refuse what must not be |
//! | [`service`] | what is asked, decided and recorded, without HTTP |
//! | [`http`] | the service as it is reached: routes, tokens, limits |
//! | [`bundle`] | a run's log on its way, and whether it is what was attested |
//! | [`client`] | the other side of the routes |
#![deny(missing_docs)]

pub mod bundle;
pub mod client;
pub mod http;
pub mod service;
pub mod store;
