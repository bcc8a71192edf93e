//! Streams a log file line by line, in order, with the per-line work spread over threads.
//!
//! The file is cut into chunks; a line belongs to the chunk its first byte lies in. Worker `w` of
//! `n` takes the chunks `w`, `w + n`, … and hands each one's results over a bounded channel, so
//! the results arrive in file order, memory stays constant, and no reordering is needed.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::line::{Line, LineError, MAX_LINE_BYTES};

/// Large enough that handing over a chunk costs nothing, small enough that a few per thread fit
/// in a fraction of the memory budget.
const CHUNK_BYTES: u64 = 1 << 20;
/// Finished chunks a worker may be ahead of the consumer.
const CHUNKS_AHEAD: usize = 2;
/// How much more is read at a time when a line runs past its chunk.
const EXTEND_BYTES: usize = 64 << 10;

/// One line of the file: where it is, and what came of it.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    /// Offset of the first byte.
    pub(crate) offset: u64,
    /// Length without the newline.
    pub(crate) bytes: u64,
    pub(crate) outcome: Result<T, LineError>,
}

/// Threads worth starting for a file of this length.
fn workers_for(len: u64) -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    cores.min(len.div_ceil(CHUNK_BYTES)).min(16)
}

/// Runs `inspect` on each line of the first `len` bytes and gives the results to `consume` in
/// file order, until it breaks. Bytes that are no line arrive as errors and the scan goes on at
/// the next newline.
pub(crate) fn scan<T: Send>(
    file: &File,
    len: u64,
    inspect: impl Fn(u64, &Line<'_>) -> T + Sync,
    mut consume: impl FnMut(Entry<T>) -> ControlFlow<()>,
) -> io::Result<()> {
    let chunks = len.div_ceil(CHUNK_BYTES);
    let workers = workers_for(len);
    if workers <= 1 {
        let mut buffer = Vec::new();
        for chunk in 0..chunks {
            for entry in scan_chunk(file, len, chunk, &mut buffer, &inspect)? {
                if consume(entry).is_break() {
                    return Ok(());
                }
            }
        }
        return Ok(());
    }
    type Batch<T> = io::Result<Vec<Entry<T>>>;
    std::thread::scope(|scope| {
        let lanes: Vec<Receiver<Batch<T>>> = (0..workers)
            .map(|first| {
                let (send, receive): (SyncSender<Batch<T>>, _) = sync_channel(CHUNKS_AHEAD);
                let inspect = &inspect;
                scope.spawn(move || {
                    let mut buffer = Vec::new();
                    for chunk in (first..chunks).step_by(workers as usize) {
                        let batch = scan_chunk(file, len, chunk, &mut buffer, inspect);
                        // A consumer that broke off has dropped its end.
                        if send.send(batch).is_err() {
                            return;
                        }
                    }
                });
                receive
            })
            .collect();
        for chunk in 0..chunks {
            let batch = lanes[(chunk % workers) as usize]
                .recv()
                .map_err(|_| io::Error::other("a scanning thread ended early"))??;
            for entry in batch {
                if consume(entry).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

fn scan_chunk<T>(
    file: &File,
    len: u64,
    chunk: u64,
    buffer: &mut Vec<u8>,
    inspect: &impl Fn(u64, &Line<'_>) -> T,
) -> io::Result<Vec<Entry<T>>> {
    let begin = chunk * CHUNK_BYTES;
    let end = len.min(begin + CHUNK_BYTES);
    // One byte before the chunk tells whether a line starts right at its first byte.
    let base = begin.saturating_sub(1);
    buffer.resize((end - base) as usize, 0);
    file.read_exact_at(buffer, base)?;
    let mut at = 0;
    if chunk > 0 {
        match memchr::memchr(b'\n', buffer) {
            Some(newline) => at = newline + 1,
            None => return Ok(Vec::new()),
        }
    }
    let in_chunk = buffer.len();
    let mut entries = Vec::with_capacity(in_chunk / 512 + 1);
    while at < in_chunk {
        let newline = match memchr::memchr(b'\n', &buffer[at..]) {
            Some(found) => Some(at + found),
            None => extend_to_newline(file, len, base, buffer, at)?,
        };
        let stop = newline.unwrap_or(buffer.len());
        let offset = base + at as u64;
        let outcome = match newline {
            Some(_) => Line::parse(&buffer[at..stop]).map(|line| inspect(offset, &line)),
            None if stop - at > MAX_LINE_BYTES => Err(LineError::TooLong { bytes: stop - at }),
            None => Err(LineError::Unterminated),
        };
        entries.push(Entry {
            offset,
            bytes: (stop - at) as u64,
            outcome,
        });
        at = stop + 1;
    }
    Ok(entries)
}

/// Reads on behind the chunk until the line that starts at `at` ends, the file does, or the line
/// is too long to be one.
fn extend_to_newline(
    file: &File,
    len: u64,
    base: u64,
    buffer: &mut Vec<u8>,
    at: usize,
) -> io::Result<Option<usize>> {
    loop {
        let from = buffer.len();
        let left = (len - base) as usize - from;
        if left == 0 || from - at > MAX_LINE_BYTES {
            return Ok(None);
        }
        buffer.resize(from + left.min(EXTEND_BYTES), 0);
        file.read_exact_at(&mut buffer[from..], base + from as u64)?;
        if let Some(found) = memchr::memchr(b'\n', &buffer[from..]) {
            return Ok(Some(from + found));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Where lines are, and whether each ends: as one finds them by looking at every byte.
    fn naive(bytes: &[u8]) -> Vec<(u64, u64, bool)> {
        let mut offset = 0;
        let mut places = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            let length = piece.len() as u64 - u64::from(ends);
            places.push((offset, length, ends));
            offset += piece.len() as u64;
        }
        places
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn scanned(bytes: &[u8], at_most: usize) -> Vec<(u64, u64, bool)> {
        let mut places = Vec::new();
        let scanned = scan(
            &file(bytes),
            bytes.len() as u64,
            |_, _| (),
            |entry| {
                let ends = !matches!(
                    entry.outcome,
                    Err(LineError::Unterminated | LineError::TooLong { .. })
                );
                places.push((entry.offset, entry.bytes, ends));
                match places.len() < at_most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            },
        );
        scanned.unwrap();
        places
    }

    fn lines(lengths: &[usize]) -> Vec<u8> {
        let line = |&length: &usize| [vec![b'x'; length], b"\n".to_vec()].concat();
        lengths.iter().flat_map(line).collect()
    }

    #[test]
    fn every_line_is_found_once_and_in_order_wherever_the_file_is_cut() {
        let chunk = CHUNK_BYTES as usize;
        let mut many: Vec<usize> = (0..4_000).map(|n| n * 7919 % 1_500).collect();
        many.insert(2_000, 200_000);
        let cases: Vec<Vec<u8>> = vec![
            Vec::new(),
            lines(&[0]),
            lines(&[5, 0, 7]),
            lines(&many),
            // A line that ends with its chunk, one that begins there, one that is cut.
            lines(&[chunk - 1, 10, chunk - 1, 10]),
            lines(&[chunk, 10, chunk - 2, 10]),
            lines(&[chunk - 2, 10, 10]),
            // Longer than a chunk, and than what is read at once.
            lines(&[10, chunk + EXTEND_BYTES - 10, 10]),
            lines(&[chunk - 30, chunk + 1_000, 10]),
            lines(&[chunk - 5, EXTEND_BYTES, 10]),
            lines(&[chunk - 5, EXTEND_BYTES + 4, EXTEND_BYTES + 5, 10]),
        ];
        for bytes in cases {
            assert_eq!(scanned(&bytes, usize::MAX), naive(&bytes));
            let torn = [&bytes[..], b"torn"].concat();
            assert_eq!(scanned(&torn, usize::MAX), naive(&torn));
        }
    }

    #[test]
    fn a_scan_ends_when_nobody_wants_more() {
        let bytes = lines(&[100; 40_000]);
        assert_eq!(scanned(&bytes, 3), naive(&bytes)[..3]);
        assert_eq!(scanned(&bytes[..1_000], 3), naive(&bytes)[..3]);
    }

    #[test]
    fn what_is_longer_than_a_line_may_be_is_not_read_to_its_end() {
        let long = vec![b'x'; MAX_LINE_BYTES + 3 * EXTEND_BYTES];
        let bytes = [lines(&[3]), long.clone()].concat();
        let mut found = Vec::new();
        let scanned = scan(
            &file(&bytes),
            bytes.len() as u64,
            |_, _| (),
            |entry| {
                found.push((entry.offset, entry.outcome.unwrap_err()));
                ControlFlow::Continue(())
            },
        );
        scanned.unwrap();
        let too_long = |error: &LineError| match error {
            LineError::TooLong { bytes } => *bytes > MAX_LINE_BYTES && *bytes <= long.len(),
            _ => false,
        };
        assert!(
            found.iter().any(|(at, error)| *at == 4 && too_long(error)),
            "{found:?}"
        );
        // As long as one may be, and torn: it might have become one.
        let torn = [lines(&[3]), vec![b'x'; MAX_LINE_BYTES]].concat();
        let last = *naive(&torn).last().unwrap();
        assert!(scanned_kinds(&torn).contains(&(last.0, "unterminated")));
    }

    fn scanned_kinds(bytes: &[u8]) -> Vec<(u64, &'static str)> {
        let mut kinds = Vec::new();
        let scanned = scan(
            &file(bytes),
            bytes.len() as u64,
            |_, _| (),
            |entry| {
                let kind = match entry.outcome {
                    Err(LineError::Unterminated) => "unterminated",
                    Err(LineError::TooLong { .. }) => "too long",
                    _ => "other",
                };
                kinds.push((entry.offset, kind));
                ControlFlow::Continue(())
            },
        );
        scanned.unwrap();
        kinds
    }
}
