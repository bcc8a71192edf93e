//! Names in braces, in the place of ids, keys and times.

use crate::store::world;

/// Puts in what `{device 1}`, `{at 5}` or `{digest root}` stands for, with quotes where it is text.
pub(super) fn fill(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, name)) = rest.split_once('{') {
        let (name, after) = name.split_once('}').unwrap();
        let (kind, which) = name.split_once(' ').unwrap();
        filled += before;
        filled += &one(kind, which);
        rest = after;
    }
    filled + rest
}

fn one(kind: &str, which: &str) -> String {
    let n = || which.parse::<u64>().unwrap();
    let text = match kind {
        "at" => return world::at(which.parse().unwrap()).unix_micros().to_string(),
        "account" => world::account(n()).to_string(),
        "device" => world::device(n()).to_string(),
        "runner" => world::runner(n()).to_string(),
        "agent" => world::agent(n()).to_string(),
        "run" => world::run(n()).to_string(),
        "attestation" => world::attestation(n()).to_string(),
        "evaluation" => world::evaluation(n()).to_string(),
        "terms" => world::terms_id(n()).to_string(),
        "token" => world::token(n()).to_string(),
        "submission" => world::submission(n()).to_string(),
        "battle" => world::battle(n()).to_string(),
        "key" => world::key(which.parse().unwrap()).to_string(),
        "nonce" => world::nonce(n()).to_string(),
        "digest" => world::digest(which).to_string(),
        "order" => world::digest(which).to_string(),
        other => panic!("there is no `{other}`"),
    };
    format!("'{text}'")
}
