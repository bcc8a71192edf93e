//! Signing for a request: whose key, and what is put where the session finds it.

use std::path::Path;

use clap::Args;
use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_guard::channel::drop::{Pile, Shown};
use lodestar_guard::config::Config;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::terse;
use lodestar_log::verify::is_live;
use lodestar_log::{Clock, LogRoot, Reader, SessionDir};
use lodestar_policy::{ApprovalRequest, Approver, Refusal, Signed};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::unusable;
use crate::configured;
use crate::failure::Failure;
use crate::inert;
use crate::installation::{self, Installation, OperatorName};
use crate::operator::Chosen;
use crate::operator_key::OperatorKey;
use crate::terminal::Terminal;

/// How sessions of hooks say that they are connected.
const HOOK: &str = "hook";

#[derive(Debug, Args)]
pub(crate) struct AsArgs {
    /// Who answers [default: the only operator whose key is here]
    #[arg(long = "as", visible_alias = "operator", value_name = "NAME")]
    name: Option<String>,
}

impl AsArgs {
    /// Refuses at once a choice that could sign nothing. Without any key one may look.
    pub(crate) fn check_choice(&self) -> Result<(), Failure> {
        if self.name.is_none() && installation::operator_keys(&Installation::locate()?)?.is_empty()
        {
            return Ok(());
        }
        self.signer().map(drop)
    }

    pub(crate) fn signer(&self) -> Result<Signer, Failure> {
        let chosen = match &self.name {
            Some(name) => Chosen::Name(OperatorName::parse(name)?),
            None => Chosen::Only,
        };
        let (name, key) = chosen.named(&Installation::locate()?, "an answer to a request")?;
        let approver = ActorId::new(name.as_str()).map_err(|e| Failure::name("operator", &e))?;
        Ok(Signer { approver, key })
    }
}

/// Somebody whose key is here.
pub(crate) struct Signer {
    pub(crate) approver: ActorId,
    key: OperatorKey,
}

impl Signer {
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self.key, OperatorKey::Sealed(_))
    }

    /// Refuses a key whose word cannot count, as the configuration of the project says; tells where there
    /// is none to ask.
    pub(crate) fn check_registered(
        &self,
        root: &Path,
        shown: &Shown,
    ) -> Result<Option<String>, Failure> {
        let file = root.join(configured::FILE);
        if !file.is_file() {
            self.check_session(root, shown)?;
            return Ok(Some(format!(
                "there is no `{}` beside the requests, so it is not known here whether the word of `{}` counts",
                configured::FILE,
                self.approver
            )));
        }
        let config = Config::read(&file)?;
        let (shown_file, public) = (inert::path(&file), self.key.public());
        let Some(one) = config.approvals.authorized_keys.with_key(&public) else {
            return Err(Failure::not_authorised(format!(
                "this key is not in `approvals.authorized_keys`, so the word of `{}` would count for nothing; nothing was signed",
                self.approver
            ))
            .help(format!(
                "an operator adds it to `{shown_file}`: actor_id = \"{}\", public_key = \"{public}\"",
                self.approver
            )));
        };
        if let Some(at) = one.revoked_at.filter(|at| now() >= *at) {
            return Err(Failure::not_authorised(format!(
                "this key of `{}` was revoked at {at}; nothing was signed",
                one.actor
            ))
            .help(format!("an operator adds a new key to `{shown_file}`")));
        }
        if one.actor != self.approver {
            return Err(Failure::not_authorised(format!(
                "this key is registered for `{}` and would sign as `{}`; nothing was signed",
                one.actor, self.approver
            ))
            .help("keep the key under the name that it is registered for"));
        }
        let request = &shown.announcement().request;
        let counts = request.check_approver(one);
        counts.map_err(|refusal| would_not_count(&refusal, one, request, &shown_file))?;
        self.check_session(root, shown)?;
        Ok(None)
    }

    /// Refuses a key that the session which asks does not count: it goes by the configuration that it was opened
    /// with, whatever stands in the file by now, and so does one that goes on after it ended.
    fn check_session(&self, root: &Path, shown: &Shown) -> Result<(), Failure> {
        let session = session_of(root, shown);
        let Some(opening) = opening(&session) else {
            return Ok(());
        };
        let request = &shown.announcement().request;
        let counts = opening
            .approvers
            .with_key(&self.key.public())
            .filter(|one| one.actor == self.approver)
            .is_some_and(|one| request.check_approver(one).is_ok());
        if counts {
            return Ok(());
        }
        let is_live = is_live(&session).unwrap_or(false);
        let first = match (is_live, opening.agent.execution.as_str()) {
            (false, _) => "",
            (true, HOOK) => "end it with `lodestar hook stop`; then ",
            (true, _) => "end it by closing the client that runs it; then ",
        };
        Err(Failure::not_authorised(format!(
            "session `{}`, which asks, was opened when `approvals.authorized_keys` did not say so, and would not count the word of `{}`; nothing was signed",
            request.session, self.approver
        ))
        .help(format!(
            "{first}let the agent make the call again, and answer the request that it makes then"
        )))
    }

    /// The key, with the passphrase that was typed for it.
    pub(crate) fn unsealed(self, passphrase: &Zeroizing<String>) -> Result<SecretKey, Failure> {
        match self.key {
            OperatorKey::Plain(key) => Ok(key),
            OperatorKey::Sealed(sealed) => sealed.open(passphrase),
        }
    }

    /// The key; a passphrase comes from the person at the terminal, and from nowhere else.
    pub(crate) fn ask(self, terminal: Option<&mut Terminal>) -> Result<SecretKey, Failure> {
        let passphrase = match (self.is_sealed(), terminal) {
            (false, _) => Zeroizing::new(String::new()),
            (true, None) => return Err(no_terminal()),
            (true, Some(terminal)) => {
                terminal.ask_hidden(&format!("Passphrase of {}: ", self.approver))?
            }
        };
        self.unsealed(&passphrase)
    }
}

/// The word of somebody who is known here and may not answer this request.
fn would_not_count(
    refusal: &Refusal,
    approver: &Approver,
    request: &ApprovalRequest,
    file: &str,
) -> Failure {
    let contract = &request.card.action.contract;
    let missing = match refusal {
        Refusal::NoRole { .. } => {
            let roles = request.requirement.roles.iter();
            let roles: Vec<String> = roles.map(|role| inert::line(role, 60)).collect();
            format!("one of the roles {}", roles.join(", "))
        }
        Refusal::NoClearance { .. } => format!(
            "clearance {}, and has {}",
            contract.required_level, approver.clearance
        ),
        Refusal::OtherScope { .. } => {
            format!("scope {}, and has {}", contract.scope, approver.scope)
        }
        other => other.to_string(),
    };
    Failure::not_authorised(format!(
        "the word of `{}` would count for nothing: it needs {missing}; nothing was signed",
        approver.actor
    ))
    .help(format!(
        "somebody who has it answers, or an operator changes the entry of `{}` in `{file}`",
        approver.actor
    ))
}

pub(crate) fn no_terminal() -> Failure {
    Failure::not_authorised("an answer needs a person, and there is no terminal to ask on")
        .help("run it on a terminal; programs answer only with a key without a passphrase, and --yes-fingerprint")
}

pub(crate) fn now() -> Timestamp {
    Clock::system().now()
}

/// Refuses what nobody's word opens any more.
pub(crate) fn check_open(shown: &Shown) -> Result<(), Failure> {
    let request = &shown.announcement().request;
    if now() < request.expires_at {
        return Ok(());
    }
    Err(Failure::check(format!(
        "request `{}` expired at {}; nothing was signed",
        request.id, request.expires_at
    ))
    .help("the agent may propose the action again"))
}

/// The end of the fingerprint, which people type.
pub(crate) fn last_four(shown: &Shown) -> String {
    let fingerprint = shown.announcement().request.card.action.fingerprint;
    let text = fingerprint.to_string();
    text[text.len() - 4..].to_owned()
}

pub(crate) fn is_last_four(shown: &Shown, typed: &str) -> bool {
    typed.trim().eq_ignore_ascii_case(&last_four(shown))
}

pub(crate) fn other_fingerprint() -> Failure {
    Failure::check("that is not the end of this request's fingerprint; nothing was signed")
        .help("it stands on the card as `last four`; `lodestar approve show` shows it")
}

/// The log of the session that asks.
fn session_of(root: &Path, shown: &Shown) -> SessionDir {
    let request = &shown.announcement().request;
    let config = Config::read(root.join(configured::FILE)).ok();
    let logs = config.map_or_else(
        || LogRoot::in_folder(root),
        |config| LogRoot::at(config.path(&config.log_root)),
    );
    logs.project(&request.project).session(&request.session)
}

/// What a session was opened with; none where its log does not tell.
fn opening(session: &SessionDir) -> Option<Opening> {
    let first = Reader::open(session).ok()?.next_event().ok()??;
    let whole = terse::whole(&first, session, None).ok()??;
    serde_json::from_value(whole).ok()
}

/// What becomes of an answer that lies there now.
pub(crate) fn what_follows(root: &Path, shown: &Shown) -> &'static str {
    match is_live(&session_of(root, shown)) {
        Ok(true) => "handed to the session, which checks it",
        Ok(false) => "nobody runs the session now; it counts when the agent makes the call again",
        Err(_) => "no log of the session is here, so whether it runs is not known",
    }
}

/// Signs, and puts the answer where the session finds it. What was signed is told.
pub(crate) fn send(
    pile: &Pile,
    shown: &Shown,
    approver: &ActorId,
    key: &SecretKey,
    decision: ApprovalDecision,
    reason: &str,
) -> Result<Value, Failure> {
    check_open(shown)?;
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let nonce = Nonce::from_bytes(random);
    let signed = Signed {
        key,
        at: now(),
        nonce,
    };
    let request = &shown.announcement().request;
    let answer = request
        .answer(approver, decision, reason, signed)
        .map_err(|e| Failure::usage(format!("the answer cannot be signed: {e}")))?;
    pile.answer(shown, &answer, nonce).map_err(unusable)?;
    Ok(json!({
        "request": request.id,
        "session": request.session,
        "fingerprint": request.card.action.fingerprint,
        "decision": decision,
        "approver": approver,
        "key_id": key.public().key_id(),
        "nonce": nonce.to_string(),
        "reason": reason,
    }))
}
