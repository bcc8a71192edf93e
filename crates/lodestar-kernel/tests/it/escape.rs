//! Real programs try to get out of every cell: in C, in Python, in a shell; in each profile; with and without
//! namespaces; as whoever runs this and as a user without rights. Whatever is forbidden is refused, whatever is granted
//! works, and the same programs without a cell do what is forbidden.

mod cases;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use cases::{Expected, cases, expected};
use lodestar_kernel::contain::Host;
use world::{Language, World};

/// Set where this very program runs as somebody else: the folder that it finds a setuid program in.
const AS_OTHER: &str = "ESCAPE_AS_OTHER";

/// What one program did, by attempt.
type Lines = BTreeMap<String, (bool, i32)>;

/// Sums over runs.
#[derive(Debug, Default)]
struct Counts {
    runs: usize,
    attempts: usize,
    forbidden: usize,
    refused: usize,
    granted: usize,
    worked: usize,
    names: BTreeSet<String>,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            runs,
            attempts,
            forbidden,
            refused,
            granted,
            worked,
            names,
        } = self;
        let names = names.len();
        write!(
            f,
            "{names} different attempts, {runs} runs, {attempts} attempts in all: \
             {refused} of {forbidden} forbidden refused, {worked} of {granted} granted worked"
        )
    }
}

/// Holds every line of every program against what is expected of it.
fn matrix(hosts: &[Host]) -> Counts {
    let mut counts = Counts::default();
    let mut wrong = Vec::new();
    for host in hosts {
        for case in cases() {
            for language in Language::ALL {
                let world = World::new(&suid());
                let ran = world.run(language, Some((&case, *host)));
                let lines = parse(&ran.stdout);
                let said: BTreeSet<_> = lines.keys().map(String::as_str).collect();
                let missing: Vec<_> = language.attempts().difference(&said).copied().collect();
                assert!(
                    missing.is_empty(),
                    "{language:?} in {case:?} did not try {missing:?}:\n{}\n{}",
                    ran.stdout,
                    ran.stderr
                );
                for (name, (did, errno)) in &lines {
                    let should = expected(name, &case, host.namespaces());
                    counts.attempts += 1;
                    match should {
                        Expected::Granted => {
                            counts.granted += 1;
                            counts.worked += usize::from(*did);
                        }
                        Expected::Forbidden => {
                            counts.forbidden += 1;
                            counts.refused += usize::from(!*did);
                        }
                    }
                    if *did != (should == Expected::Granted) {
                        let namespaces = host.namespaces();
                        wrong.push(format!(
                            "{language:?} {case:?} namespaces={namespaces} {name}: did={did} errno={errno}, {should:?}"
                        ));
                    }
                }
                counts.names.extend(lines.into_keys());
                counts.runs += 1;
                wrong.extend(world.harmed(&case, &ran.planted).into_iter().map(|harm| {
                    let namespaces = host.namespaces();
                    format!("{language:?} {case:?} namespaces={namespaces}: {harm}")
                }));
            }
        }
    }
    assert!(wrong.is_empty(), "{counts}\n{}", wrong.join("\n"));
    counts
}

fn parse(text: &str) -> Lines {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (name, did, errno) = (words.next()?, words.next()?, words.next()?);
        Some((name.to_owned(), (did == "did", errno.parse().ok()?)))
    };
    text.lines().filter_map(line).collect()
}

fn hosts() -> [Host; 2] {
    [Host::here(), Host::here().without_namespaces()]
}

/// A program that is setuid to somebody else: made by root for whoever comes after.
fn suid() -> std::path::PathBuf {
    match std::env::var_os(AS_OTHER) {
        Some(folder) => Path::new(&folder).join("id"),
        None => Path::new("/usr/bin/id").to_owned(),
    }
}

#[test]
fn escape_is_refused_to_every_program_in_every_profile() {
    let counts = matrix(&hosts());
    println!("as this user: {counts}");
    assert!(counts.forbidden > 1000 && counts.granted > 300, "{counts}");
}

#[test]
fn escape_is_refused_to_a_user_without_rights() {
    if !rustix::process::geteuid().is_root() {
        println!("whoever runs this has no rights: the other test is this one");
        return;
    }
    // This program, a setuid one and a temporary folder, where that user can reach them.
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = place.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let tools = place.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let id = tools.join("id");
    std::fs::copy("/usr/bin/id", &id).unwrap();
    std::fs::set_permissions(&id, PermissionsExt::from_mode(0o4755)).unwrap();
    let temporary = place.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    std::fs::set_permissions(&temporary, PermissionsExt::from_mode(0o1777)).unwrap();
    for test in [
        "escape::escape_is_refused_to_every_program_in_every_profile",
        "escape::escape_is_no_vain_word_without_a_cell",
        "escape::escape_by_a_fork_bomb_is_bounded",
    ] {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args([test, "--exact", "--nocapture"])
            .env(AS_OTHER, &tools)
            .env("TMPDIR", &temporary)
            .env("HOME", "/nonexistent")
            .current_dir(&temporary)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{errors}");
        assert!(said.contains("1 passed"), "{said}");
        for line in said.lines().filter(|line| line.contains("attempts")) {
            println!("without rights, {line}");
        }
    }
}

#[test]
fn escape_is_no_vain_word_without_a_cell() {
    let (mut attempts, mut did) = (0, BTreeSet::new());
    for language in Language::ALL {
        let world = World::new(&suid());
        let lines = parse(&world.run(language, None).stdout);
        let case = &cases()[0];
        for (name, (done, _)) in lines {
            if expected(&name, case, true) == Expected::Forbidden {
                attempts += 1;
                if done {
                    did.insert(format!("{language:?} {name}"));
                }
            }
        }
    }
    println!(
        "without a cell {} of {attempts} forbidden attempts succeed",
        did.len()
    );
    for name in [
        "C read_key",
        "C write_hook_by_hard_link_beside",
        "C chmod_outside",
        "C move_git",
        "C parent_environ",
        "C vm_read",
        "C pidfd_getfd",
        "C limits_set",
        "C signal",
        "C unix_stream",
        "C unix_abstract",
        "C unix_pair_datagram",
        "C tcp4",
        "C tcp6",
        "C mptcp",
        "C tcp_fast_open",
        "C io_uring",
        "C keyctl",
        "C sysv_memory",
        "C clone_parent",
        "C inherited_descriptor",
        "C int80",
        "Python read_key",
        "Python ptrace",
        "Python proxy_variable",
        "Shell append_lodestar",
        "Shell tcp4",
        "Shell setsid",
    ] {
        assert!(did.contains(name), "{name} does nothing: {did:?}");
    }
}

#[test]
fn escape_by_a_fork_bomb_is_bounded() {
    if rustix::process::geteuid().is_root() {
        println!("the number of processes does not bind root; the notes of the cell say so");
        return;
    }
    for host in hosts() {
        let world = World::new(&suid());
        let said = world.bomb(&cases()[3], host, 3000);
        let lines = parse(&said);
        assert_eq!(
            lines["fork_bomb"],
            (false, rustix::io::Errno::AGAIN.raw_os_error()),
            "{said}"
        );
    }
    println!("fork bomb: 2 attempts, 2 bounded");
}
