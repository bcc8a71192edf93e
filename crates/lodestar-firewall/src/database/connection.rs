//! A connection that may be let go on any thread.

use std::ops::{Deref, DerefMut};
use std::thread;

use postgres::Client;

/// The client waits for its server when it goes, which a thread that drives asynchronous tasks may not.
pub struct Connection(Option<Client>);

const THERE: &str = "INVARIANT: only dropping takes it out";

impl From<Client> for Connection {
    fn from(client: Client) -> Self {
        Self(Some(client))
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.as_ref().expect(THERE)
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        self.0.as_mut().expect(THERE)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let client = self.0.take();
        if let Ok(thread) = thread::Builder::new().spawn(move || drop(client)) {
            // A panic there has been reported by the panic hook; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}
