//! The binary as its users meet it. One test program, so that it links once.

mod attach;
mod auto;
mod block_trace;
mod commands;
mod compare;
mod faults;
mod house;
mod integrity;
mod job;
mod kill;
mod live;
mod models;
mod profile;
mod streaming;
mod suite;
mod support;
mod verify;
mod witness;
