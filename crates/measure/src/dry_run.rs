//! The IO list of a pattern as CSV, without touching a target.
//!
//! What: `i,stream,t_rule,offset,size,mode`, a line for each IO. `i` counts the
//! IOs of a stream from 0; `t_rule` is the time function of the IO's pattern
//! (`consecutive`, `pause 1ms`, `burst 10 pause 100ms`, `poisson 2000/s`); offset and
//! size are in bytes. Where a stream is an open loop there is one column more,
//! `due_ns`: the IO's intended instant from the start of the run, empty for IOs that
//! have none. How: the streams take turns, one IO each, as their real order depends
//! on the device. Source: paper 000/001, section 3.1, the attributes of an IO.

use crate::pattern::{Pattern, PatternError};
use std::io::Write;
use uflip_device::Arrival;

/// The first line.
pub const HEADER: &str = "i,stream,t_rule,offset,size,mode";

/// A dry run came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// The pattern gives no IOs.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The list could not be written.
    #[error("cannot write the IO list: {0}")]
    Write(#[from] std::io::Error),
}

/// Writes the IOs of `pattern`, which must be resolved, to `out`: `io_count` for
/// each stream, header first.
///
/// # Errors
/// [`DryRunError`].
pub fn write_csv(
    pattern: &Pattern,
    io_count: u64,
    seed: u64,
    out: &mut dyn Write,
) -> Result<(), DryRunError> {
    let mut streams = pattern.streams(io_count, seed)?;
    let basics = pattern.basics();
    let rules: Vec<String> = basics.iter().map(|basic| basic.timing.to_string()).collect();
    let open = pattern.is_open_loop();
    writeln!(out, "{HEADER}{}", if open { ",due_ns" } else { "" })?;
    for i in 0..io_count {
        for (number, stream) in streams.iter_mut().enumerate() {
            let Some(io) = stream.next() else { continue };
            let which = if let Pattern::SideBySide(_) = pattern { number } else { usize::from(io.pattern) };
            let (rule, mode) = (&rules[which], io.mode.name());
            write!(out, "{i},{number},{rule},{},{},{mode}", io.offset.0, io.size)?;
            match io.arrival {
                Arrival::At(instant) => writeln!(out, ",{}", instant.0)?,
                Arrival::After(_) => writeln!(out, "{}", if open { "," } else { "" })?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &str, count: u64) -> String {
        let mut out = Vec::new();
        write_csv(&text.parse().unwrap(), count, 1, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn streams_take_turns_and_carry_their_own_rule() {
        let text =
            "SR(io_size=512, target_size=1K) | SW(io_size=1K, target_offset=4K, target_size=2K, pause=1ms)";
        assert_eq!(
            csv(text, 2),
            "i,stream,t_rule,offset,size,mode\n\
             0,0,consecutive,0,512,read\n0,1,pause 1ms,4096,1024,write\n\
             1,0,consecutive,512,512,read\n1,1,pause 1ms,5120,1024,write\n"
        );
    }

    #[test]
    fn a_mix_is_one_stream() {
        let text =
            "1 SR(io_size=512, target_size=1K) / 2 SW(io_size=512, target_size=1K, pause=100ms, burst=10)";
        assert_eq!(
            csv(text, 4),
            "i,stream,t_rule,offset,size,mode\n\
             0,0,consecutive,0,512,read\n1,0,burst 10 pause 100ms,0,512,write\n\
             2,0,burst 10 pause 100ms,512,512,write\n3,0,consecutive,512,512,read\n"
        );
    }

    #[test]
    fn an_open_loop_shows_its_instants() {
        let text = "2 x SW(io_size=512, target_size=2K, rate=2000/s)";
        assert_eq!(
            csv(text, 2),
            "i,stream,t_rule,offset,size,mode,due_ns\n\
             0,0,rate 2000/s,0,512,write,0\n0,1,rate 2000/s,1024,512,write,500000\n\
             1,0,rate 2000/s,512,512,write,1000000\n1,1,rate 2000/s,1536,512,write,1500000\n"
        );
        let beside = "SR(io_size=512, target_size=1K) | RW(io_size=512, target_size=512, rate=1/s)";
        assert!(csv(beside, 1).ends_with("0,0,consecutive,0,512,read,\n0,1,rate 1/s,0,512,write,0\n"));
    }

    #[test]
    fn an_open_target_size_is_refused() {
        let pattern = "SR".parse().unwrap();
        assert!(matches!(
            write_csv(&pattern, 1, 1, &mut Vec::new()),
            Err(DryRunError::Pattern(PatternError::Unresolved))
        ));
    }
}
