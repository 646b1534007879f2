//! uflip
#![forbid(unsafe_code)]
fn main() {}
