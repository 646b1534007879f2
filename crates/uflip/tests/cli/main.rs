//! The binary as its users meet it. One test program, so that it links once.

mod auto;
mod block_trace;
mod commands;
mod faults;
mod kill;
mod support;
mod witness;
