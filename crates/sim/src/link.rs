//! The host interface: a fixed latency for each command and a bandwidth for
//! each direction (paper 001, section 5.2: response time is linear in the size
//! with a small latency). Half duplex: one transfer at a time.

use crate::describe;
use crate::units::{byte_ns_q20, transfer_ns, us_ns};

/// The state of the interface.
#[derive(Clone, Debug)]
pub struct Interface {
    read_latency_ns: u64,
    write_latency_ns: u64,
    read_byte_q20: u64,
    write_byte_q20: u64,
    free_at_ns: u64,
    slots_free_at_ns: Vec<u64>,
    /// Bytes moved so far, both directions.
    pub bytes: u64,
}

impl Interface {
    /// An idle interface.
    pub fn new(d: &describe::Link) -> Interface {
        Interface {
            read_latency_ns: us_ns(d.read_latency_us),
            write_latency_ns: us_ns(d.write_latency_us),
            read_byte_q20: byte_ns_q20(d.read_mb_s),
            write_byte_q20: byte_ns_q20(d.write_mb_s),
            free_at_ns: 0,
            slots_free_at_ns: vec![0; d.queue_depth as usize],
            bytes: 0,
        }
    }

    /// When a command submitted at `at_ns` is taken up, and by which slot.
    #[inline]
    pub fn accept(&self, at_ns: u64) -> (usize, u64) {
        let mut best = 0;
        for (i, free) in self.slots_free_at_ns.iter().enumerate() {
            if *free <= at_ns {
                return (i, at_ns);
            }
            if *free < self.slots_free_at_ns[best] {
                best = i;
            }
        }
        (best, self.slots_free_at_ns[best].max(at_ns))
    }

    /// Gives the slot back at `done_ns`.
    #[inline]
    pub fn release(&mut self, slot: usize, done_ns: u64) {
        self.slots_free_at_ns[slot] = done_ns;
    }

    /// Fixed cost of a read command, in ns.
    #[inline]
    pub fn read_latency_ns(&self) -> u64 {
        self.read_latency_ns
    }

    /// Moves `bytes` to the host from `at_ns` on; gives the end.
    #[inline]
    pub fn to_host(&mut self, at_ns: u64, bytes: u64) -> u64 {
        self.bytes += bytes;
        let end_ns = self.free_at_ns.max(at_ns) + transfer_ns(bytes, self.read_byte_q20);
        self.free_at_ns = end_ns;
        end_ns
    }

    /// Takes a write command and its `bytes` from `at_ns` on; gives the end.
    #[inline]
    pub fn from_host(&mut self, at_ns: u64, bytes: u64) -> u64 {
        self.bytes += bytes;
        let end_ns =
            self.free_at_ns.max(at_ns + self.write_latency_ns) + transfer_ns(bytes, self.write_byte_q20);
        self.free_at_ns = end_ns;
        end_ns
    }

    /// A command without data (flush, trim) from `at_ns` on; gives the end.
    pub fn command(&mut self, at_ns: u64) -> u64 {
        at_ns + self.write_latency_ns
    }
}
