//! Work that would hold up everybody else's calls where one thread serves them all.

use crate::error::GuardError;

/// What takes more bytes than this is dealt with beside the caller's thread.
const HEAVY: usize = 64 << 10;

/// Whether something of so many bytes is better dealt with [`aside`].
pub fn is_heavy(bytes: usize) -> bool {
    bytes > HEAVY
}

/// Does some work on a thread that may take its time.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GuardError> {
    let working = tokio::task::spawn_blocking(work);
    working.await.map_err(|_| GuardError::Panicked)
}
