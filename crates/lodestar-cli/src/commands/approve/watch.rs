//! `lodestar approve watch`: requests as they arrive, on a screen of their own or as JSON lines.

mod looking;
mod screen;
mod stream;
mod view;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt as _;
use lodestar_core::statement::ApprovalDecision;
use lodestar_guard::channel::drop::Pile;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGTERM};
use tokio::time::{Duration, MissedTickBehavior, interval};
use zeroize::Zeroizing;

use super::answer::{self, AsArgs, Signer};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::place;
use screen::Screen;
use view::{Deed, View};

const AFTER_HELP: &str = "\
Keys: arrows or j/k choose a request, PgUp/PgDn scroll, a shows all arguments, g agrees, d refuses,
q leaves. Before anything is signed, the last four characters of the fingerprint have to be typed;
they stand at the end of the card.

With --json, what happens is written as JSON lines, and nothing can be answered.

Examples:
  lodestar approve watch
  lodestar approve watch --as alice";

/// How often the time left is drawn again; files are not looked at for it.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    who: AsArgs,
}

pub(crate) fn run(args: &WatchArgs, app: &mut App) -> Result<Exit, Failure> {
    let root = place::folder(app.root())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::io("."))?;
    if app.json {
        return runtime.block_on(stream::run(&root, app));
    }
    Screen::check(app)?;
    args.who.check_choice()?;
    runtime.block_on(on_screen(args, &root, app))
}

async fn on_screen(args: &WatchArgs, root: &Path, app: &App) -> Result<Exit, Failure> {
    let pile = Pile::unseen(root);
    let mut looks = looking::start(root.to_owned());
    let told_to_end = told_to_end()?;
    end_with_the_terminal()?;
    let mut screen = Screen::enter(app.out.paint)?;
    let mut view = View::default();
    let mut keys = EventStream::new();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        screen.draw(&mut view)?;
        tokio::select! {
            event = keys.next() => match event {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    match view.press(key) {
                        Deed::None => {}
                        Deed::Leave => return Ok(Exit::Done),
                        Deed::Answer { decision, reason } => match signer(args, root, &view) {
                            Err(failure) => view.say_problem(&failure.with_help()),
                            Ok(signer) if signer.is_sealed() => {
                                view.ask_passphrase(signer.approver.as_str(), decision, reason);
                            }
                            Ok(signer) => {
                                sign(root, &pile, &mut view, signer, decision, &reason, &Zeroizing::default());
                            }
                        },
                        Deed::Sign { decision, reason, passphrase } => {
                            view.say("signing…");
                            screen.draw(&mut view)?;
                            match signer(args, root, &view) {
                                Ok(signer) => sign(root, &pile, &mut view, signer, decision, &reason, &passphrase),
                                Err(failure) => view.say_problem(&failure.with_help()),
                            }
                        }
                    }
                }
                Some(Ok(Event::Resize(..))) => screen.forget(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Failure::from(error)),
                None => return Ok(Exit::Done),
            },
            look = looks.recv() => match look {
                Some(look) => view.refresh(look),
                None => return Ok(Exit::Done),
            },
            _ = tick.tick() => {}
        }
        if told_to_end.load(Ordering::Relaxed) {
            return Ok(Exit::Done);
        }
    }
}

/// Who answers, if their word can count.
fn signer(args: &WatchArgs, root: &Path, view: &View) -> Result<Signer, Failure> {
    let signer = args.who.signer()?;
    if let Some(shown) = view.answering() {
        signer.check_registered(root, shown)?;
    }
    Ok(signer)
}

/// Set when the system asks the process to end: the terminal is given back before it does.
fn told_to_end() -> Result<Arc<AtomicBool>, Failure> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&told))?;
    }
    Ok(told)
}

/// Ends the process when its terminal is gone: nobody is there to see or to answer, and whoever reads keys
/// from it would only read errors.
fn end_with_the_terminal() -> Result<(), Failure> {
    let waiting = std::thread::Builder::new().name("lodestar-terminal".to_owned());
    waiting.spawn(|| {
        let stdin = std::io::stdin();
        // Of a terminal that hangs up one is told whether one asked or not.
        let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
        while let Ok(_) | Err(Errno::INTR) = poll(&mut terminal, None) {
            if !terminal[0].revents().is_empty() {
                std::process::exit(Exit::CheckFailed.number().into());
            }
        }
    })?;
    Ok(())
}

fn sign(
    root: &Path,
    pile: &Pile,
    view: &mut View,
    signer: Signer,
    decision: ApprovalDecision,
    reason: &str,
    passphrase: &Zeroizing<String>,
) {
    let Some(shown) = view.answering().cloned() else {
        return;
    };
    let approver = signer.approver.clone();
    let sent = signer
        .unsealed(passphrase)
        .and_then(|key| answer::send(pile, &shown, &approver, &key, decision, reason));
    match sent {
        Ok(_) => {
            let follows = answer::what_follows(root, &shown);
            view.done(&match decision {
                ApprovalDecision::Grant => format!("✓ signed: agreed ({follows})"),
                ApprovalDecision::Deny => format!("✗ signed: refused ({follows})"),
            });
        }
        Err(failure) => view.say_problem(&failure.with_help()),
    }
}
