//! What waiting for people costs: a thousand calls that are held, and how soon an answer is heard.

use std::time::{Duration, Instant};

use lodestar_core::contract::{
    BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_guard::channel::drop::{DropDirectory, Pile};
use lodestar_guard::{Config, Holds, Keys, Session, Setup};
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use lodestar_log::Clock;
use lodestar_policy::Signed;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{Bound, Figure, session};

/// Calls that wait.
const HELD: u64 = 1000;

/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(10);

/// Answers whose way is timed.
const ANSWERED: usize = 101;

/// A tool that does nothing, and may do it only when somebody said so.
struct Held(Definition);

impl Held {
    fn new() -> Self {
        Self(Definition {
            name: ToolName::new("room.book").expect("a valid name"),
            server: ServerIdentity::new("bench").expect("a valid name"),
            description: "does nothing".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"room": {"type": "string"}},
                "additionalProperties": false,
            }),
            roles: [].into(),
            declared: None,
            minimum: Contract {
                required_level: Rung::L4,
                blast_radius: BlastRadius::External,
                reversibility: Reversibility::Compensable,
                scope: Scope::global(),
                data_sensitivity: DataSensitivity::Private,
                preconditions: Preconditions::default(),
                sandbox: Sandbox::ControlledNetwork,
                permissions: [Permission::Network].into(),
            },
        })
    }
}

impl Tool for Held {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn call<'a>(&'a self, _: Call<'a>) -> Calling<'a> {
        Box::pin(async { Ok(Output::text("done")) })
    }
}

fn approver() -> SecretKey {
    SecretKey::from_seed([8; 32])
}

/// A whole session over a drop directory, its held calls, and people who answer some of them.
pub(crate) fn measure() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let folder = tempfile::tempdir().expect("a scratch folder");
    runtime.block_on(async {
        let session = open(folder.path()).await;
        let calls: Vec<_> = (0..HELD).map(|room| book(&session, room)).collect();
        let mut pile = Pile::below(folder.path()).expect("the drop directory is there");
        while pile.requests().count() < calls.len() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            pile.refresh().expect("it can be read");
        }
        let before = cpu();
        tokio::time::sleep(WATCHED).await;
        let spent = cpu() - before;
        let mut ways = answer(&pile, &calls).await;
        ways.sort();
        let median = ways[ways.len() / 2];
        let slowest = ways[ways.len() - 1];
        for call in &calls {
            call.abort();
        }
        session.close("measured").await.expect("it can be closed");
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        vec![
            Figure {
                name: "holds: CPU of 1,000 that wait 10 s, in ms",
                value: millis(spent),
                bound: Bound::AtMost(20.0),
                detail: format!("{spent:.2?} of a whole session over a drop directory"),
            },
            Figure {
                name: "holds: from an answer to the end of its call, median in ms",
                value: millis(median),
                bound: Bound::AtMost(50.0),
                detail: format!(
                    "{} answers while the others wait; the slowest took {slowest:.1?}",
                    ways.len()
                ),
            },
        ]
    })
}

async fn open(folder: &std::path::Path) -> Session {
    let config = format!(
        "project_id = \"bench\"\nactor_id = \"coder\"\nauto_approve_ceiling = 3\n\
         approval_timeout_ms = 600000\n\
         [tool_defaults.\"room.book\"]\nrequired_trust_level = \"L4\"\n\
         blast_radius = \"external\"\nreversibility = \"compensable\"\n\
         data_sensitivity = \"private\"\npermissions = [\"network\"]\n\
         sandbox = \"controlled-network\"\n\
         [[approvals.authorized_keys]]\nactor_id = \"anna\"\npublic_key = \"{}\"\n",
        approver().public()
    );
    let config = Config::parse(&config, folder).expect("a configuration");
    let channel = std::sync::Arc::new(DropDirectory::below(folder));
    let setup = Setup::new(config, Keys::new(session::key())).tool(Held::new());
    let opening = setup.holds(Holds::Tell(vec![channel])).open();
    opening.await.expect("a session in a scratch folder")
}

fn book(session: &Session, room: u64) -> JoinHandle<bool> {
    let session = session.clone();
    tokio::spawn(async move {
        let arguments = json!({"room": format!("room {room}")});
        let reply = session.call("room.book", arguments).await;
        reply.is_ok_and(|reply| reply.ran())
    })
}

/// Answers some requests, one after the other; how long each call took to end.
async fn answer(pile: &Pile, calls: &[JoinHandle<bool>]) -> Vec<Duration> {
    let anna = ActorId::new("anna").expect("a valid name");
    let key = approver();
    let mut ways = Vec::new();
    for (number, shown) in (0_u8..).zip(pile.requests().take(ANSWERED)) {
        let nonce = Nonce::from_bytes([number; 16]);
        let signed = Signed {
            key: &key,
            at: Clock::system().now(),
            nonce,
        };
        let request = &shown.announcement().request;
        let grant = request.answer(&anna, ApprovalDecision::Grant, "", signed);
        let grant = grant.expect("it can be signed");
        let ended = || calls.iter().filter(|call| call.is_finished()).count();
        let before = ended();
        let started = Instant::now();
        pile.answer(shown, &grant, nonce)
            .expect("it can be put there");
        while ended() == before {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        ways.push(started.elapsed());
    }
    ways
}

/// What the whole process has used so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}
