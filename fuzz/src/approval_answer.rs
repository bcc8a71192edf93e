//! Laws of what a server of the HTTP channel brings.

use lodestar_core::name::is_valid_name;
use lodestar_guard::channel::http::{Brought, NotAnAnswer};

/// Reads header lines, an empty line and a body as the channel does: by the first header of a name.
pub fn brought(data: &[u8]) -> Result<Brought, NotAnAnswer> {
    let end = data.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&data[..end], &data[end + 2..]),
        None => (data, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let lines: Vec<_> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    let header = |name: &str| {
        let found = lines.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| *value)
    };
    Brought::read(header, body.to_vec())
}

/// What is read can stand in a path as it is, and its bytes are those that came. What is not is refused
/// in words that are inert and short.
pub fn approval_answer(data: &[u8]) {
    match brought(data) {
        Ok(brought) => {
            assert!(is_valid_name(brought.id.as_str().as_bytes()));
            assert!(data.ends_with(&brought.bytes));
            let request = brought.request.to_string();
            assert!(
                data.windows(request.len())
                    .any(|part| part == request.as_bytes())
            );
        }
        Err(problem) => {
            let problem = problem.to_string();
            assert!(
                problem.len() < 1000 && !problem.contains(char::is_control),
                "{problem}"
            );
        }
    }
}
