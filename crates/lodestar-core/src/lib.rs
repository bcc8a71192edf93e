//! Vocabulary and pure rules of Lodestar: every term of the project is defined here, once.
//!
//! No I/O, no async, no clock, no randomness: time and random bytes come in as parameters.
//!
//! | module | what it settles |
//! |---|---|
//! | [`name`], [`id`] | names that may become path components; typed ids of chain links |
//! | [`time`], [`digest`], [`canonical`], [`merkle`] | the bytes everything is hashed over |
//! | [`unambiguous`] | JSON of somebody else's, in which no name stands twice |
//! | [`key`], [`statement`], [`note`] | who signed what: DSSE statements, C2SP signed notes |
//! | [`event`] | the catalogue of event types |
//! | [`scope`], [`sensitivity`] | where something holds, who may see it |
//! | [`chain`] | observation → claim → evidence → belief → decision → action → outcome → revision |
//! | [`provenance`] | where the value of an argument came from |
//! | [`ladder`], [`contract`], [`fingerprint`] | the six rungs, what an action promises, what exactly is approved |
//! | [`device`], [`execution`] | how far a device is trusted, how far a run is proved |
//! | [`calibration`] | how well confidence matches what came of it |
//! | [`defence`] | what a harness can take out, to see that it is missed |
#![deny(missing_docs)]

pub mod calibration;
pub mod canonical;
pub mod chain;
pub mod contract;
pub mod defence;
pub mod device;
pub mod digest;
pub mod event;
pub mod execution;
pub mod fingerprint;
pub mod id;
pub mod key;
pub mod ladder;
pub mod merkle;
pub mod name;
pub mod note;
pub mod provenance;
pub mod scope;
pub mod sensitivity;
pub mod statement;
pub mod time;
pub mod unambiguous;
