//! A stretch of a stream in memory: what was just read, and some of what came before.

use std::io::{self, Read};

/// What is read at once.
const CHUNK: usize = 1 << 20;

pub struct Window<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the buffer begins in the stream.
    pub base: u64,
    /// Nothing follows.
    pub ended: bool,
}

impl<R: Read> Window<R> {
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            base: 0,
            ended: false,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Forgets what lies before `keep` and reads on; how much it has forgotten.
    ///
    /// # Errors
    /// When the stream can't be read.
    pub fn advance(&mut self, keep: usize) -> io::Result<(usize, usize)> {
        // Moving what is kept costs: not for every little.
        let forgotten = if keep >= CHUNK || keep == self.buffer.len() {
            keep
        } else {
            0
        };
        self.buffer.drain(..forgotten);
        self.base += forgotten as u64;
        let old = self.buffer.len();
        self.buffer.resize(old + CHUNK, 0);
        let mut filled = old;
        let done = loop {
            if filled == self.buffer.len() {
                break Ok(());
            }
            match self.reader.read(&mut self.buffer[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break Ok(());
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.buffer.truncate(filled);
        done.map(|()| (forgotten, filled - old))
    }
}
