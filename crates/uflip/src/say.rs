//! Words for people, on standard error. A word that cannot be said (the terminal
//! is gone, nobody reads the pipe any more, the disk behind it is full) is no
//! reason to stop measuring: it is lost, and nothing else. What could steer the
//! terminal is taken out ([`printable`]).
//!
//! `eprintln!` and its like panic there; the lints in `main.rs` keep them out.

use crate::printable;
use std::fmt::Arguments;
use std::io::Write;

/// Says a line, if anybody can hear it. The macro [`say!`](crate::say) calls it.
pub fn line(text: Arguments<'_>) {
    part(format_args!("{text}\n"));
}

/// Says something without ending the line.
pub fn part(text: Arguments<'_>) {
    let mut out = std::io::stderr().lock();
    // See above: nobody is left to tell.
    let _ = out.write_all(printable::lines(&text.to_string()).as_bytes()).and_then(|()| out.flush());
}

/// Says on standard error what has to be said of results before anything else.
pub fn warn(contents: &uflip_store::StoreContents) {
    contents.alerts().iter().for_each(|alert| crate::say!("warning: {alert}"));
}

/// A line on standard error; takes what `format!` takes and never fails.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::line(format_args!($($text)*))
    };
}

/// The same without ending the line.
#[macro_export]
macro_rules! say_part {
    ($($text:tt)*) => {
        $crate::say::part(format_args!($($text)*))
    };
}
