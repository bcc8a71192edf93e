//! Appending without barriers, against one loop that hashes and writes the same bytes.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write as _};

use lodestar_core::digest::sha256;

use crate::{Bound, Figure, best_of, session};

const TRIES: u32 = 3;

pub(crate) fn measure(events: u64) -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut round = 0;
    let mut lodestar = std::time::Duration::MAX;
    let mut limit = std::time::Duration::MAX;
    // Interleaved, so that both see the same neighbours.
    for _ in 0..TRIES {
        round += 1;
        let writer = session::create(folder.path(), &format!("s{round}"));
        let actor = session::actor();
        let path = writer.dir().events_path();
        lodestar = lodestar.min(best_of(1, || {
            for step in 1..events {
                session::append(&writer, &actor, step);
            }
        }));
        drop(writer);
        let bytes = std::fs::read(&path).expect("the log that was just written");
        let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        let copy = folder.path().join("copy");
        limit = limit.min(best_of(1, || {
            let mut out = BufWriter::with_capacity(64 << 10, File::create(&copy).expect("a file"));
            for line in &lines {
                black_box(sha256(line));
                out.write_all(line).expect("the disk has room");
            }
            out.flush().expect("the disk has room");
        }));
        std::fs::remove_file(&path).expect("a file that is there");
    }
    let rate = events as f64 / lodestar.as_secs_f64();
    vec![Figure {
        name: "append ÷ hash and write the same bytes",
        value: lodestar.as_secs_f64() / limit.as_secs_f64(),
        bound: Bound::AtMost(3.0),
        detail: format!("{events} events: {lodestar:.2?} against {limit:.2?}; {rate:.0} events/s"),
    }]
}
