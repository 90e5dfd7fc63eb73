//! A stretch of a stream in memory: what was just read, and some of what came before.

use std::io::{self, Read};

/// Read at once: small enough to be searched while it is still in the processor's cache.
const CHUNK: usize = 512 << 10;
/// All that is ever held.
const ROOM: usize = 8 << 20;

pub struct Window<R> {
    reader: R,
    buffer: Vec<u8>,
    filled: usize,
    /// Where the buffer begins in the stream.
    pub base: u64,
    /// Nothing follows.
    pub ended: bool,
}

impl<R: Read> Window<R> {
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: vec![0; ROOM],
            filled: 0,
            base: 0,
            ended: false,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Reads on. Where there is no room, what lies before `keep` is forgotten; how much that was, and how much was read.
    ///
    /// # Errors
    /// When the stream can't be read.
    pub fn advance(&mut self, keep: usize) -> io::Result<(usize, usize)> {
        let mut forgotten = 0;
        // Moving what is kept costs, so it is done seldom.
        if ROOM - self.filled < CHUNK {
            forgotten = keep.min(self.filled);
            self.buffer.copy_within(forgotten..self.filled, 0);
            self.filled -= forgotten;
            self.base += forgotten as u64;
        }
        let old = self.filled;
        let end = (old + CHUNK).min(ROOM);
        while self.filled < end {
            match self.reader.read(&mut self.buffer[self.filled..end]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What was read before counts.
                Err(_) if self.filled > old => break,
                Err(error) => return Err(error),
            }
        }
        Ok((forgotten, self.filled - old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_little_is_held() {
        let stream: Vec<u8> = (0..3 * ROOM).map(|n| (n / 1000 % 251) as u8).collect();
        let mut window = Window::new(stream.as_slice());
        let mut searched = 0;
        while !window.ended {
            let keep = searched - usize::min(searched, 1000);
            let (forgotten, read) = window.advance(keep).expect("bytes");
            searched = searched - forgotten + read;
            assert_eq!(searched, window.bytes().len());
            let from = usize::try_from(window.base).expect("small");
            assert!(window.bytes() == &stream[from..from + searched]);
        }
        assert_eq!(
            window.base + window.bytes().len() as u64,
            stream.len() as u64
        );
    }
}
