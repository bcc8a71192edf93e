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
//! | [`wire`], [`code`] | what is asked and answered; why it is refused |
//! | [`openapi`] | the routes as a document |
//! | [`bundle`] | a run's log on its way, and whether it is what was attested |
//! | [`client`] | the other side of the routes |
//! | [`device`] | a device's own folder, what it signs, and whether it may |
//! | [`daemon`] | says that a device is there, and hears what it has to obey |
//! | [`run`] | a run where it is made: registered, followed, shipped, attested |
//! | [`config`], [`token`] | how a service is set up; what somebody may show it |
#![deny(missing_docs)]

pub mod bundle;
pub mod client;
pub mod code;
pub mod config;
pub mod daemon;
pub mod device;
pub mod http;
pub mod openapi;
pub mod run;
mod schema;
pub mod service;
pub mod store;
pub mod token;
pub mod wire;
