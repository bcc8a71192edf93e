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
