//! Many tasks, many processes.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use lodestar_log::{LogWriter, OpenError};

use crate::crash::spawn_child;
use crate::support::{World, append, close, id};

#[test]
fn a_second_process_gets_a_clear_error_at_once() {
    let world = World::new();
    let mut child = spawn_child("hold s1", world.folder());
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    while !line.ends_with("open\n") {
        line.clear();
        out.read_line(&mut line).unwrap();
    }
    let started = Instant::now();
    let error = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5), "it waited");
    assert!(matches!(error, OpenError::Busy { .. }));
    assert_eq!(
        error.to_string(),
        "session `s1` is already being written by another process"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    // The lock went with the process.
    LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
}

#[test]
fn eight_processes_open_and_close_sessions_of_one_project() {
    let world = World::new();
    let children: Vec<_> = (0..8)
        .map(|p| spawn_child(&format!("sessions p{p} 10"), world.folder()))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
    }
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions.len(), 80);
    assert_eq!(report.ledger_records, 160);
}

#[test]
fn many_threads_append_to_one_session() {
    let world = World::new();
    let writer = world.create("s1");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for i in 0..200 {
                    let receipt = append(&writer, 1);
                    if i % 50 == 0 {
                        receipt.wait(lodestar_log::Barrier::Disk).unwrap();
                    }
                }
            });
        }
    });
    close(&writer);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].events, 1602);
}

/// The futures need no runtime: this polls sixty-four of them by hand, with wakers that count.
#[test]
fn durable_futures_resolve_without_a_runtime() {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    let world = World::new();
    let writer = world.create("s1");
    for i in 1..=64 {
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut future = pin!(append(&writer, i).durable());
        let mut polls = 0;
        while future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            polls += 1;
            let before = Instant::now();
            while woken.0.load(Ordering::SeqCst) < polls {
                assert!(before.elapsed() < Duration::from_secs(10), "never woken");
                std::thread::yield_now();
            }
        }
    }
}
