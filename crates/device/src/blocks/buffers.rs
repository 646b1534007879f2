//! Buffers that a program uses again and again.

use crate::buffer::AlignedBuffer;

/// Buffers of one size, made once, on page boundaries as O_DIRECT wants them.
#[derive(Debug)]
pub struct Buffers {
    free: Vec<AlignedBuffer>,
    bytes: usize,
}

impl Buffers {
    /// `count` buffers of `bytes` each, their memory touched.
    ///
    /// # Panics
    /// Where `bytes` is zero.
    pub fn new(count: usize, bytes: usize) -> Buffers {
        let make = |_| {
            let mut buffer = AlignedBuffer::new(bytes);
            buffer.bytes_mut().fill(std::hint::black_box(0));
            buffer
        };
        Buffers { free: (0..count).map(make).collect(), bytes }
    }

    /// A buffer that nobody uses; `None` where all are in use.
    pub fn take(&mut self) -> Option<AlignedBuffer> {
        self.free.pop()
    }

    /// Takes one back. What is no buffer of this size is let go.
    pub fn give(&mut self, buffer: AlignedBuffer) {
        if buffer.bytes().len() == self.bytes {
            self.free.push(buffer);
        }
    }
}
