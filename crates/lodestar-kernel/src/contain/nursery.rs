//! The thread that contained children are started from.
//!
//! The kernel ends a child that asked for it when the *thread* that started it ends, not the process. Threads of a
//! pool come and go; this one stays as long as the process does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};

type Birth = Box<dyn FnOnce() + Send>;

/// The way to the one thread. A process has one: its children are the process's, too.
static NURSERY: OnceLock<Mutex<Sender<Birth>>> = OnceLock::new();

/// Runs `start` on the thread that outlives every child, and gives back what it gave.
pub fn start<T: Send + 'static>(start: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    let birth: Birth = Box::new(move || {
        // Whoever waits is there until it has come.
        let _ = done.send(start());
    });
    let nursery = NURSERY.get_or_init(|| {
        let (send, births) = mpsc::channel::<Birth>();
        std::thread::Builder::new()
            .name("nursery".to_owned())
            .spawn(move || {
                for birth in births {
                    // One that fails must not take the others' thread away.
                    let _ = catch_unwind(AssertUnwindSafe(birth));
                }
            })
            .expect("the system has a thread for children");
        Mutex::new(send)
    });
    nursery
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send(birth)
        .expect("INVARIANT: the nursery's thread does not end");
    result
        .recv()
        .expect("INVARIANT: starting a child does not panic")
}
