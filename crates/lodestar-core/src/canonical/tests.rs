mod laws;
mod reading;
mod vectors;
mod writing;

use super::*;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("canonical JSON is UTF-8")
}

fn canonical(json: &str) -> String {
    text(canonicalize(json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}")))
}

fn problem(json: impl AsRef<[u8]>) -> (usize, ParseProblem) {
    match parse(json.as_ref()) {
        Err(CanonicalError::Parse { offset, problem }) => (offset, problem),
        other => panic!("{other:?}"),
    }
}
