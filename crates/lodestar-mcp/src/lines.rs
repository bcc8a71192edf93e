//! Messages as lines: one after the other, each bounded, and a line that is too long costs only itself.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// What is read at once.
const CHUNK: usize = 64 << 10;

/// Lines out of a stream of bytes.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Where the line begins that is given next.
    start: usize,
    /// How much of it was looked at without finding its end.
    looked: usize,
    /// Of a line that is too long, what is gone already.
    skipped: Option<TooLong>,
}

/// A line that was too long, and is gone but for its ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TooLong {
    /// How long it was.
    pub bytes: u64,
    /// How it began: enough to see whose it was.
    pub head: Vec<u8>,
    /// How it ended.
    pub tail: Vec<u8>,
}

/// How much is kept of either end of a line that is too long.
const END: usize = 256;

impl TooLong {
    fn more(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let room = END - self.head.len();
        self.head.extend_from_slice(&piece[..room.min(piece.len())]);
        self.tail
            .extend_from_slice(&piece[piece.len().saturating_sub(END)..]);
        self.tail.drain(..self.tail.len().saturating_sub(END));
    }
}

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was too long, and is gone.
    TooLong(TooLong),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(from: R, limit: usize) -> Self {
        Self {
            from,
            limit,
            buffer: Vec::new(),
            start: 0,
            looked: 0,
            skipped: None,
        }
    }

    /// The next line that is not empty; none at the end. What follows the last line's end is a line too.
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let rest = &self.buffer[self.start + self.looked..];
            if let Some(at) = memchr::memchr(b'\n', rest) {
                let end = self.start + self.looked + at;
                let (start, skipped) = (self.start, self.skipped.take());
                self.start = end + 1;
                self.looked = 0;
                match self.given(start, end, skipped) {
                    Given::Nothing => continue,
                    Given::Whole(start, end) => {
                        return Ok(Some(Line::Whole(&self.buffer[start..end])));
                    }
                    Given::TooLong(gone) => return Ok(Some(Line::TooLong(gone))),
                }
            }
            self.looked = self.buffer.len() - self.start;
            if self.looked > self.limit {
                let gone = self.skipped.get_or_insert_default();
                gone.more(&self.buffer[self.start..]);
                self.buffer.clear();
                (self.start, self.looked) = (0, 0);
            }
            self.make_room();
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                let (start, end, skipped) = (self.start, self.buffer.len(), self.skipped.take());
                (self.start, self.looked) = (end, 0);
                return Ok(match self.given(start, end, skipped) {
                    Given::Nothing => None,
                    Given::Whole(start, end) => Some(Line::Whole(&self.buffer[start..end])),
                    Given::TooLong(gone) => Some(Line::TooLong(gone)),
                });
            }
        }
    }

    fn given(&self, start: usize, end: usize, skipped: Option<TooLong>) -> Given {
        if skipped.is_some() || end - start > self.limit {
            let mut gone = skipped.unwrap_or_default();
            gone.more(&self.buffer[start..end]);
            return Given::TooLong(gone);
        }
        let line = &self.buffer[start..end];
        let end = start + line.strip_suffix(b"\r").unwrap_or(line).len();
        match self.buffer[start..end].trim_ascii().is_empty() {
            true => Given::Nothing,
            false => Given::Whole(start, end),
        }
    }

    /// What was given goes; a long message does not keep its room for ever.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * CHUNK {
            self.buffer = Vec::new();
        }
        self.buffer.reserve(CHUNK);
    }
}

enum Given {
    Nothing,
    Whole(usize, usize),
    TooLong(TooLong),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in pieces.
    struct Drip(Vec<u8>, usize);

    impl AsyncRead for Drip {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            into: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let most = self.1.min(self.0.len()).min(into.remaining());
            let piece: Vec<u8> = self.0.drain(..most).collect();
            into.put_slice(&piece);
            std::task::Poll::Ready(Ok(()))
        }
    }

    async fn all(bytes: &[u8], piece: usize, limit: usize) -> Vec<Result<Vec<u8>, u64>> {
        let mut lines = Lines::new(Drip(bytes.to_vec(), piece), limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(match line {
                Line::Whole(line) => Ok(line.to_vec()),
                Line::TooLong(gone) => Err(gone.bytes),
            });
        }
        found
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_only_itself() {
        let text = b"one\r\n\n  \ntwo\n0123456789\nthree";
        for piece in 1..text.len() {
            let found = all(text, piece, 5).await;
            let wanted = [
                Ok(b"one".to_vec()),
                Ok(b"two".to_vec()),
                Err(10),
                Ok(b"three".to_vec()),
            ];
            assert_eq!(found, wanted, "in pieces of {piece}");
        }
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(
            bytes in prop::collection::vec(prop::sample::select(b"ab\n\r ".to_vec()), 0..200),
            piece in 1_usize..40,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let whole = runtime.block_on(all(&bytes, bytes.len().max(1), 20));
            let pieces = runtime.block_on(all(&bytes, piece, 20));
            prop_assert_eq!(whole, pieces);
        }
    }
}
