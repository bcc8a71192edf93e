//! What a command line comes to, until somebody has read its parts: very little is known to be harmless.

use lodestar_core::ladder::Rung;

/// What is known of a command line.
pub(super) struct Reading {
    /// The strictest of its parts.
    pub(super) rung: Rung,
    /// Files that it writes.
    pub(super) writes: Vec<String>,
    /// Files that it reads.
    pub(super) reads: Vec<String>,
}

/// Programs that look, with plain words behind them.
const LOOKS: [&str; 8] = ["ls", "pwd", "cat", "head", "tail", "wc", "stat", "file"];

/// Programs that change what is here and nothing else.
const LOCAL: [&str; 3] = ["mkdir", "touch", "rmdir"];

/// Reads a command line.
pub(super) fn read(line: &str) -> Reading {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./-".contains(&byte);
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let program = words.first().copied().unwrap_or_default();
    let rung = match program.rsplit('/').next().unwrap_or_default() {
        "lodestar" => Rung::L5,
        _ if !line.bytes().all(plain) => Rung::L4,
        _ if LOOKS.contains(&program) => Rung::L0,
        _ if LOCAL.contains(&program) => Rung::L3,
        _ => Rung::L4,
    };
    let places = || {
        let words = words.iter().skip(1).filter(|word| !word.starts_with('-'));
        words.map(|word| (*word).to_owned()).collect()
    };
    Reading {
        rung,
        reads: match rung {
            Rung::L0 => places(),
            _ => Vec::new(),
        },
        writes: match rung {
            Rung::L3 => places(),
            _ => Vec::new(),
        },
    }
}
