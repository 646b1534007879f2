//! The binary as its users meet it. One test program, so that it links once.

mod attach;
mod auto;
mod block_trace;
mod commands;
mod compare;
mod faultfs;
mod contents;
mod faults;
mod house;
mod job;
mod kill;
mod limits;
mod live;
mod models;
mod outputs;
mod plans;
mod profile;
mod schedules;
mod races;
mod scratch_files;
mod safety_matrix;
mod streaming;
mod suite;
mod support;
mod verify;
mod witness;
