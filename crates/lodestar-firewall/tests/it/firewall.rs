//! What the firewall promises, one promise a test.

mod derived;
mod entering;
mod errors;
mod linking;
mod moving;
mod people;
mod plain;
mod poison;
mod retrieval;
mod sequences;
mod sessions;
mod together;
mod without;
