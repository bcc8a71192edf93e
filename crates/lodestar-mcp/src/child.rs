//! A server as a process of one's own: its group, its streams, its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lodestar_guard::config::{Demand, Reached};
use lodestar_kernel::contain::{Cell, Confined, Containment, Hosting, Plan, State, Watch, nursery};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// What every child has of the environment, beside what the configuration gives it.
const ENVIRONMENT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// How long a child may take to end once its input is closed, and again once it is told to.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a group that was killed may take until nobody of it is left.
const GOING: Duration = Duration::from_millis(500);

/// How often it is looked whether what is protected still is.
const LOOKS: Duration = Duration::from_millis(100);

/// A process, and everything that it started and that stayed in its group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    /// Its temporary files go with it.
    confined: Option<Confined>,
    looking: Option<tokio::task::AbortHandle>,
    watch: Arc<Mutex<Watch>>,
    warnings: mpsc::UnboundedSender<String>,
}

/// What is put around a child.
#[derive(Debug, Clone)]
pub(crate) struct Wall {
    /// What it may reach; none where nothing contains it.
    pub(crate) plan: Option<Plan>,
    /// Whether that has to hold.
    pub(crate) demand: Demand,
    /// What enforces it.
    pub(crate) hosting: Hosting,
}

/// What is said about a child while it lives.
#[derive(Debug)]
pub(crate) struct Heard {
    /// What it writes to its standard error, piece by piece, until nobody takes it.
    pub(crate) stderr: mpsc::Sender<Vec<u8>>,
    /// What happened to protected places that it could have done. A way of its own: no child can fill it.
    pub(crate) warnings: mpsc::UnboundedSender<String>,
}

/// Its streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
}

/// Starts a child.
pub(crate) fn start(
    reached: &Reached,
    root: &Path,
    wall: &Wall,
    heard: Heard,
) -> Result<(Process, Streams, Containment), String> {
    let Reached::Child {
        command,
        args,
        env,
        inherit_env,
        cwd,
    } = reached
    else {
        return Err("it is no process".to_owned());
    };
    let given = |name: &str| std::env::var_os(name).map(|value| (name.to_owned(), value));
    let mut environment: BTreeMap<String, OsString> =
        ENVIRONMENT.iter().copied().filter_map(given).collect();
    for name in inherit_env {
        let value = given(name).ok_or(format!(
            "`inherit_env` names `{name}`, which is not set where the proxy was started"
        ))?;
        environment.extend([value]);
    }
    environment.extend(env.iter().map(|(name, value)| (name.clone(), value.into())));
    let place = cwd.as_ref().map_or(root.to_owned(), |cwd| root.join(cwd));
    let mut starting = std::process::Command::new(command);
    starting
        .args(args)
        .env_clear()
        .envs(environment)
        .current_dir(&place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let failed = |problem: std::io::Error| {
        format!(
            "`{command}` cannot be started in `{}`: {problem}",
            place.display()
        )
    };
    let mut confined = match &wall.plan {
        None => None,
        Some(plan) => {
            let cell = Cell::of(plan, (wall.hosting)());
            let cell = cell.map_err(|problem| failed(std::io::Error::other(problem)))?;
            Some(cell.confine(&mut starting))
        }
    };
    let runtime = tokio::runtime::Handle::current();
    // It ends with the thread that starts it, so that has to be one that stays.
    let started = nursery::start(move || {
        let _entered = runtime.enter();
        Command::from(starting).kill_on_drop(true).spawn()
    });
    let mut child = started.map_err(|problem| match &mut confined {
        None => failed(problem),
        Some(confined) => failed(confined.explain(problem)),
    })?;
    let containment = match &mut confined {
        None => Containment::absent("its configuration says `containment = \"off\"`"),
        Some(confined) => confined.started(),
    };
    let group = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let Heard { stderr, warnings } = heard;
    let watch = confined.as_mut().map(|one| std::mem::take(one.watch()));
    let watch = Arc::new(Mutex::new(watch.unwrap_or_default()));
    let looking = group.filter(|_| confined.is_some()).map(|group| {
        let look = look(Arc::clone(&watch), group, warnings.clone());
        tokio::spawn(look).abort_handle()
    });
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process {
        child,
        group,
        confined,
        looking,
        watch,
        warnings,
    };
    // Most of it is refused before it starts; whether a datagram arrived is known only now.
    if wall.demand == Demand::Required && containment.state != State::Proved {
        return Err(format!(
            "`{command}` has to be contained and is not, so that it was ended: {}",
            containment.summary()
        ));
    }
    let (Some(input), Some(output), Some(errors)) = streams else {
        return Err(format!("`{command}` has no streams"));
    };
    tokio::spawn(drain(errors, stderr));
    Ok((process, Streams { input, output }, containment))
}

/// Looks after what is protected for as long as a child lives, and ends it where that cannot be had.
async fn look(watch: Arc<Mutex<Watch>>, group: Pid, to: mpsc::UnboundedSender<String>) {
    while !to.is_closed() {
        tokio::time::sleep(LOOKS).await;
        let watch = Arc::clone(&watch);
        let looked = tokio::task::spawn_blocking(move || {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            watch.look(Some(group))
        });
        for news in looked.await.unwrap_or_default() {
            let _ = to.send(news.to_string());
            if news.is_open() {
                let _ = to
                    .send("the server was ended, since it could have gone on with that".to_owned());
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }
}

/// Reads to the end whatever happens: a child whose errors nobody reads would stand still.
async fn drain(mut from: impl tokio::io::AsyncRead + Unpin, to: mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(read) = from.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        let _ = to.try_send(buffer[..read].to_vec());
    }
}

impl Process {
    /// Waits for its end, and says in words how it ended. Its input must be closed.
    pub(crate) async fn ended(&mut self) -> String {
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.clear_away();
                match status.code() {
                    Some(code) => format!("it ended with exit code {code}"),
                    None => format!("it ended: {status}"),
                }
            }
            Ok(Err(problem)) => format!("its end cannot be seen: {problem}"),
            Err(_) => {
                self.stop().await;
                "it closed its output and went on, and was stopped".to_owned()
            }
        }
    }

    /// Ends it and its group: told first, then made to.
    pub(crate) async fn stop(&mut self) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .is_err()
        {
            self.signal(Signal::KILL);
            let _ = self.child.wait().await;
        }
        self.clear_away();
    }

    /// What it left behind in its group goes with it. Once: its number may be somebody else's afterwards.
    fn clear_away(&mut self) {
        self.signal(Signal::KILL);
        if let Some(group) = self.group.take() {
            // Whoever is in the middle of a call ends it before it is gone.
            let over = Instant::now() + GOING;
            while rustix::process::test_kill_process_group(group).is_ok() && Instant::now() < over {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if let Some(looking) = self.looking.take() {
            looking.abort();
        }
        if self.confined.take().is_some() {
            let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
            for news in watch.look(None) {
                let _ = self.warnings.send(news.to_string());
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.clear_away();
    }
}
