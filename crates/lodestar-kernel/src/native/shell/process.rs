//! One program from start to end: bounded time, bounded output, and nothing of it left over.
//!
//! It runs in a process group of its own, which is killed as a whole; what left the group is found
//! as [`Strays`] does. Everything happens on the calling thread, which polls.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use lodestar_core::contract::Sandbox;

use super::executable::Executable;
use super::strays::Strays;
use crate::contain::{Cell, Confined, Containment, OutOfReach, Plan, Planted};
use crate::native::fs::{Early, Reins};

/// How long a program that was asked to end may take before it is killed.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// How long output is still read when everything that was found has been killed. Only a process
/// that was not found can keep a stream open that long.
const DRAIN: Duration = Duration::from_millis(500);

/// How long one wait is: how late a deadline or a stop can be seen.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// How long one wait is when both streams have ended, which a program does last.
const SHORT_TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000,
};

/// How often it is looked whether what is protected still is.
const LOOKS: Duration = Duration::from_millis(100);

/// The variable by which the processes of one run are known. Its value cannot be guessed.
pub(crate) const MARKER: &str = "LODESTAR_RUN";

/// What to run, and how much it may say.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) executable: &'a Executable,
    pub(crate) arguments: Vec<OsString>,
    /// Its whole environment, besides the marker.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// Where it runs.
    pub(crate) directory: &'a OwnedFd,
    /// What it reads; nothing is the null device.
    pub(crate) input: Option<&'a [u8]>,
    /// Most bytes per stream.
    pub(crate) max_output: usize,
    /// What it may reach.
    pub(crate) confines: Confines,
}

/// What a program is for: where it works and what it needs beyond.
#[derive(Debug, Clone)]
pub(crate) struct Confines {
    pub(crate) profile: Sandbox,
    pub(crate) project: PathBuf,
    pub(crate) reads: Vec<PathBuf>,
    pub(crate) writes: Vec<PathBuf>,
    /// How client configuration lies before it.
    pub(crate) clients: Clients,
}

/// How a program finds the configuration of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Not at all: it may hold secrets.
    Hidden,
    /// As it is, and not to be written: for programs of ours that compare whole folders.
    Fixed,
}

impl Confines {
    pub(crate) fn plan(&self, program: &Path, out_of_reach: &OutOfReach) -> Plan {
        let mut out_of_reach = out_of_reach.clone();
        if self.clients == Clients::Fixed {
            for hidden in [&mut out_of_reach.clients, &mut out_of_reach.hidden] {
                out_of_reach.fixed.append(hidden);
            }
        }
        // What a program is given by name it may read, whoever else may not.
        let given = |place: &PathBuf| !self.reads.contains(place);
        out_of_reach.clients.retain(given);
        out_of_reach.hidden.retain(given);
        let mut plan = Plan::new([self.profile], program, &self.project, out_of_reach);
        // A folder of the project may be another by now, if it is a link.
        let above = plan.out_of_reach.lodestar.as_deref().and_then(Path::parent);
        plan.alterable = above.map(Path::to_owned).into_iter().collect();
        plan.loads.clone_from(&self.reads);
        plan.writes.clone_from(&self.writes);
        plan
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Own,
    /// It was killed early.
    Early(Early),
    /// It was killed for saying too much.
    Flooded(Stream),
}

/// A stream of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) end: End,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// How many processes outlived the program and were killed.
    pub(crate) strays: usize,
    /// Whether something that was not found still holds a stream.
    pub(crate) held_open: bool,
    /// What was in force around it.
    pub(crate) containment: Containment,
    /// What it made and was moved aside.
    pub(crate) planted: Vec<Planted>,
}

/// Runs it to its end. An error means that it did not start.
pub(crate) fn run(run: &Run<'_>, reins: &Reins) -> io::Result<Ended> {
    let marker = marker()?;
    // On this thread, which stays to its end: it ends with the thread that started it.
    let plan = run
        .confines
        .plan(run.executable.path(), reins.out_of_reach());
    let cell = Cell::of(&plan, reins.host()).map_err(io::Error::other)?;
    let mut starting = command(run, &marker)?;
    let mut confined = cell.confine(&mut starting);
    let started = starting.spawn();
    drop(starting);
    let mut child = started.map_err(|problem| confined.explain(problem))?;
    let containment = confined.started();
    let leader = Pid::from_child(&child);
    reins.hold_group(Some(leader));
    let mut streams = Streams::of(&mut child, run.max_output)?;
    let mut strays = Strays::of(leader, format!("{MARKER}={marker}"));
    let mut planted = Vec::new();
    let mut watching = Watching {
        confined: &mut confined,
        planted: &mut planted,
        next: Instant::now() + LOOKS,
    };
    let end = supervise(leader, &mut streams, &mut strays, reins, &mut watching);
    // The leader is a zombie now, so the group's number is still its own.
    let _ = kill_process_group(leader, Signal::KILL);
    let killed = strays.kill();
    reins.hold_group(None);
    let status = child.wait()?;
    // Nobody is left who could put it back.
    planted.extend(confined.watch().look(None));
    streams.drain();
    // What was still in the pipe may have gone past the limit, too.
    let end = match (end, streams.flooded()) {
        (End::Own, Some(stream)) => End::Flooded(stream),
        (end, _) => end,
    };
    let held_open = streams.is_open();
    Ok(Ended {
        status,
        end,
        stdout: streams.stdout.bytes,
        stderr: streams.stderr.bytes,
        strays: killed,
        held_open,
        containment,
        planted,
    })
}

fn marker() -> io::Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn command(run: &Run<'_>, marker: &str) -> io::Result<Command> {
    let stdin = match run.input {
        None => Stdio::null(),
        // A file, so that a program that does not read cannot block anybody.
        Some(input) => {
            let mut file = tempfile::tempfile()?;
            file.write_all(input)?;
            file.rewind()?;
            file.into()
        }
    };
    let mut command = Command::new(run.executable.path());
    command
        .arg0(run.executable.spelling())
        .args(&run.arguments)
        .env_clear()
        .envs(&run.environment)
        .env(MARKER, marker)
        // The directory that was opened, whatever its name leads to by now.
        .current_dir(format!("/proc/self/fd/{}", run.directory.as_raw_fd()))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    Ok(command)
}

/// What is looked at while a program runs.
struct Watching<'a> {
    confined: &'a mut Confined,
    planted: &'a mut Vec<Planted>,
    next: Instant,
}

impl Watching<'_> {
    /// Looks, if it is time to; whether the program may go on.
    fn is_well(&mut self, leader: Pid) -> bool {
        if Instant::now() < self.next {
            return true;
        }
        self.next = Instant::now() + LOOKS;
        let news = self.confined.watch().look(Some(leader));
        let is_open = news.iter().any(Planted::is_open);
        self.planted.extend(news);
        !is_open
    }
}

/// Waits until the leader has ended, and makes it end when it has to. Does not reap it.
fn supervise(
    leader: Pid,
    streams: &mut Streams,
    strays: &mut Strays,
    reins: &Reins,
    watching: &mut Watching<'_>,
) -> End {
    let mut end = End::Own;
    let mut asked: Option<Instant> = None;
    loop {
        streams.wait_and_read();
        strays.look_if_due();
        if has_ended(leader) {
            return end;
        }
        if !watching.is_well(leader) {
            let _ = kill_process_group(leader, Signal::KILL);
        }
        if let (End::Own, Some(stream)) = (end, streams.flooded()) {
            end = End::Flooded(stream);
            let _ = kill_process_group(leader, Signal::KILL);
        } else if let (End::Own, Some(early)) = (end, reins.early()) {
            end = End::Early(early);
            asked = Some(Instant::now());
            let _ = kill_process_group(leader, Signal::TERM);
            // A stopped process does not hear it otherwise.
            let _ = kill_process_group(leader, Signal::CONT);
        }
        if asked.is_some_and(|at| at.elapsed() > TERM_GRACE) {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

fn has_ended(leader: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(leader), options) {
        Ok(status) => status.is_some(),
        Err(Errno::INTR) => false,
        // Not our child any more: somebody reaped it, so there is nothing to wait for.
        Err(_) => true,
    }
}

/// Both streams of output.
struct Streams {
    stdout: Reading,
    stderr: Reading,
}

/// One stream, and what it said up to the limit.
struct Reading {
    file: Option<File>,
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
}

impl Streams {
    fn of(child: &mut Child, limit: usize) -> io::Result<Self> {
        let stdout = child.stdout.take().map(OwnedFd::from);
        let stderr = child.stderr.take().map(OwnedFd::from);
        Ok(Self {
            stdout: Reading::of(stdout, limit)?,
            stderr: Reading::of(stderr, limit)?,
        })
    }

    fn wait_and_read(&mut self) {
        let mut waiting: Vec<PollFd<'_>> = [&self.stdout, &self.stderr]
            .into_iter()
            .filter_map(|reading| reading.file.as_ref())
            .map(|file| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN))
            .collect();
        let tick = if waiting.is_empty() {
            &SHORT_TICK
        } else {
            &TICK
        };
        // An interrupted wait is a short one.
        let _ = poll(&mut waiting, Some(tick));
        self.stdout.read();
        self.stderr.read();
    }

    fn drain(&mut self) {
        let end = Instant::now() + DRAIN;
        while self.is_open() && Instant::now() < end {
            self.wait_and_read();
        }
    }

    fn is_open(&self) -> bool {
        self.stdout.file.is_some() || self.stderr.file.is_some()
    }

    fn flooded(&self) -> Option<Stream> {
        if self.stdout.over {
            Some(Stream::Stdout)
        } else if self.stderr.over {
            Some(Stream::Stderr)
        } else {
            None
        }
    }
}

impl Reading {
    fn of(fd: Option<OwnedFd>, limit: usize) -> io::Result<Self> {
        if let Some(fd) = &fd {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(Self {
            file: fd.map(File::from),
            bytes: Vec::new(),
            limit,
            over: false,
        })
    }

    /// Reads one piece. Once over the limit it throws away, so that the end of the stream is seen.
    fn read(&mut self) {
        let Some(file) = &mut self.file else { return };
        let mut piece = [0; 64 * 1024];
        match file.read(&mut piece) {
            Ok(0) => self.file = None,
            Ok(read) => {
                let room = self.limit - self.bytes.len();
                self.over |= read > room;
                self.bytes.extend_from_slice(&piece[..read.min(room)]);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => self.file = None,
        }
    }
}
