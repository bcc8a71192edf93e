//! People outside of the process, and the channel that brings their words.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestar_core::id::RequestId;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_guard::channel::{Announcement, Channel, Closing, Delivered, Doing, Notice};
use lodestar_guard::{Holds, Session};
use lodestar_kernel::record::Rejection;
use lodestar_log::Clock;
use lodestar_log::verify::is_live;
use lodestar_policy::{ApprovalRequest, Signed};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::governed::{CountingTool, GRADES, Project};

/// A channel that keeps everything at hand.
#[derive(Default)]
pub(crate) struct Pigeon {
    pub(crate) announced: Mutex<Vec<Announcement>>,
    pub(crate) withdrawn: Mutex<Vec<(RequestId, Closing)>>,
    pub(crate) cleared: Mutex<Vec<(SessionId, RequestId, Closing)>>,
    pub(crate) notices: Mutex<Vec<Notice>>,
    sent: Mutex<VecDeque<Delivered>>,
    pub(crate) recorded: Mutex<Vec<Delivered>>,
    bell: Notify,
}

impl Pigeon {
    pub(crate) fn requests(&self) -> Vec<ApprovalRequest> {
        let announced = self.announced.lock().unwrap();
        let mut requests: Vec<ApprovalRequest> = Vec::new();
        for one in announced.iter() {
            if !requests.iter().any(|known| known.id == one.request.id) {
                requests.push(one.request.clone());
            }
        }
        requests
    }

    pub(crate) fn bring(&self, request: RequestId, bytes: Vec<u8>) {
        let delivered = Delivered { request, bytes };
        self.sent.lock().unwrap().push_back(delivered);
        self.bell.notify_one();
    }

    pub(crate) fn say(&self, request: &ApprovalRequest, seed: u8, decision: ApprovalDecision) {
        self.bring(request.id, said(request, seed, decision));
    }

    /// Waits until so many things that were brought are in the log.
    pub(crate) async fn heard(&self, things: usize) {
        for _ in 0..5_000 {
            if self.recorded.lock().unwrap().len() >= things {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("what was brought was not heard");
    }

    pub(crate) async fn announced(&self, requests: usize) -> ApprovalRequest {
        for _ in 0..5_000 {
            if self.requests().len() >= requests {
                return self.requests().pop().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("nobody was told");
    }
}

impl Channel for Pigeon {
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> Doing<'a, ()> {
        self.announced.lock().unwrap().push(announcement.clone());
        Box::pin(async { Ok(()) })
    }

    fn withdraw<'a>(&'a self, request: RequestId, closing: Closing) -> Doing<'a, ()> {
        self.withdrawn.lock().unwrap().push((request, closing));
        Box::pin(async { Ok(()) })
    }

    fn clear_away<'a>(
        &'a self,
        session: &'a SessionId,
        request: RequestId,
        closing: Closing,
    ) -> Doing<'a, ()> {
        let cleared = (session.clone(), request, closing);
        self.cleared.lock().unwrap().push(cleared);
        Box::pin(async { Ok(()) })
    }

    fn notify<'a>(&'a self, notice: &'a Notice) -> Doing<'a, ()> {
        self.notices.lock().unwrap().push(notice.clone());
        Box::pin(async { Ok(()) })
    }

    fn next(&self) -> Doing<'_, Delivered> {
        Box::pin(async {
            loop {
                let rung = self.bell.notified();
                if let Some(delivered) = self.sent.lock().unwrap().front() {
                    return Ok(delivered.clone());
                }
                rung.await;
            }
        })
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn recorded<'a>(&'a self, delivered: &'a Delivered) -> Doing<'a, ()> {
        self.sent.lock().unwrap().pop_front();
        self.recorded.lock().unwrap().push(delivered.clone());
        Box::pin(async { Ok(()) })
    }
}

pub(crate) fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

pub(crate) fn said(request: &ApprovalRequest, seed: u8, decision: ApprovalDecision) -> Vec<u8> {
    let key = key(seed);
    let signed = Signed {
        key: &key,
        at: Clock::system().now(),
        nonce: Nonce::from_bytes(random()),
    };
    let name = ActorId::new(format!("person-{seed}")).unwrap();
    let envelope = request.answer(&name, decision, "looked at it", signed);
    envelope.unwrap().to_json()
}

pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    bytes
}

pub(crate) fn config(timeout: u64, more: &str) -> String {
    let people: String = [1, 2]
        .map(|seed| {
            format!(
                "[[approvals.authorized_keys]]\nactor_id = \"person-{seed}\"\npublic_key = \"{}\"\n",
                key(seed).public()
            )
        })
        .concat();
    format!("approval_timeout_ms = {timeout}\n{GRADES}\n{people}\n{more}")
}

pub(crate) async fn open(
    project: &Project,
    config: &str,
    tool: &CountingTool,
    pigeon: &Arc<Pigeon>,
) -> Session {
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let setup = project.setup(config, &others).tool(tool.clone());
    let channel: Arc<dyn Channel> = pigeon.clone();
    setup
        .holds(Holds::Tell(vec![channel]))
        .open()
        .await
        .unwrap()
}

pub(crate) fn send() -> Value {
    json!({"to": "anna@corp.example", "text": "hello"})
}

pub(crate) async fn times_out(session: &Session, arguments: Value) -> RequestId {
    let reply = session.call("box.send", arguments).await.unwrap();
    match reply.refusal() {
        Some(Rejection::ApprovalTimeout { request } | Rejection::ApprovalRequired { request }) => {
            *request
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) const GRANT: ApprovalDecision = ApprovalDecision::Grant;

/// Lets go of a session, and waits until nothing of its process has it any more.
pub(crate) async fn gone(project: &Project, session: Session) {
    let dir = project.log().session(session.id());
    drop(session);
    for _ in 0..5_000 {
        if !is_live(&dir).unwrap() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the session is still held");
}
