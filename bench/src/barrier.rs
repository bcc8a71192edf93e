//! A barrier for each event: 64 tasks that share syncs, against one sync per event.

use std::io::Write as _;
use std::time::Instant;

use crate::{Bound, Figure, session};

const TASKS: u64 = 64;
const EVENTS_PER_TASK: u64 = 200;
const ALONE: u64 = 1500;

pub(crate) fn measure() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let line = vec![b'x'; 600];
    let mut best = 0f64;
    let mut detail = String::new();
    for round in 0..3 {
        let mut file = std::fs::File::create(folder.path().join("alone")).expect("a file");
        let started = Instant::now();
        for _ in 0..ALONE {
            file.write_all(&line).expect("the disk has room");
            file.sync_data().expect("the disk works");
        }
        let alone = ALONE as f64 / started.elapsed().as_secs_f64();

        let writer = session::create(folder.path(), &format!("s{round}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .expect("a runtime");
        let started = Instant::now();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let writer = writer.clone();
                    tokio::spawn(async move {
                        let actor = session::actor();
                        for step in 0..EVENTS_PER_TASK {
                            let receipt = session::append(&writer, &actor, task * 1000 + step);
                            receipt.durable().await.expect("the disk works");
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("no task panics");
            }
        });
        let shared = (TASKS * EVENTS_PER_TASK) as f64 / started.elapsed().as_secs_f64();
        if shared / alone > best {
            best = shared / alone;
            detail = format!("{shared:.0} durable events/s against {alone:.0}");
        }
    }
    vec![Figure {
        name: "64 tasks with barriers ÷ one sync per event",
        value: best,
        bound: Bound::AtLeast(8.0),
        detail,
    }]
}
