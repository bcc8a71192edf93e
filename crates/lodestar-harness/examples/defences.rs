//! Takes each defence out in turn and shows which probes miss it: `cargo xtask defences`.
//!
//! A probe's own contrast run says that it misses its own defence. This says of every defence by whom it is
//! missed at all; one that nobody misses is a defence that nobody tests.

use std::path::PathBuf;
use std::process::ExitCode;

use lodestar_core::defence::Defence;
use lodestar_harness::{Options, missed, probes};

fn main() -> ExitCode {
    let Some(program) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: defences PATH-OF-LODESTAR");
        return ExitCode::from(2);
    };
    let database = std::env::var("LODESTAR_TEST_DATABASE_URL").ok();
    let options = Options {
        program: &program,
        database: database.as_deref(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let probes = probes::all();
    let mut unnoticed = 0;
    for defence in Defence::ALL {
        let missed = missed(&probes, &options, *defence);
        unnoticed += usize::from(missed.is_empty());
        let names: Vec<&str> = missed
            .iter()
            .map(|probe| probe.header.name.as_ref())
            .collect();
        match names.as_slice() {
            [] => println!("{defence:<28} NOT MISSED BY ANY PROBE"),
            names => println!("{defence:<28} {:>3}  {}", names.len(), names.join(", ")),
        }
    }
    let all = Defence::ALL.len();
    println!(
        "\n{} of {all} defences are missed by a probe; {} probes",
        all - unnoticed,
        probes.len()
    );
    match unnoticed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
