//! What is somebody else's: every route of the table, with every token that must not open it.

use lodestar_core::digest::sha256;
use lodestar_core::statement::Envelope;
use lodestar_gateway::code::Code;
use lodestar_gateway::http::{Face, Route, Who, routes};
use lodestar_gateway::wire;
use serde_json::{Value, json};

use super::Scene;
use super::post::Post;
use lodestar_harness::world::fleet::{Account, Claims, Machine};

pub(super) async fn attack(scene: &Scene) {
    let before = scene.standing(&scene.owner).await;
    tokens(scene).await;
    platform(scene).await;
    assert_eq!(
        scene.standing(&scene.owner).await,
        before,
        "nothing of the owner's moved"
    );
    borrowed(scene).await;
}

/// A path with the owner's own ids in it.
fn path_of(scene: &Scene, route: &Route, tokens: &wire::Page<wire::Token>) -> String {
    let mut path = route.path.to_owned();
    for name in route.parameters() {
        let id = match name {
            "device" => scene.machine.id.to_string(),
            "run" => scene.best.run.to_string(),
            "submission" => scene.submission.id.to_string(),
            "token" => tokens.items[0].id.to_string(),
            "terms" => scene.made.terms.to_string(),
            "account" => scene.owner.id.to_string(),
            "battle" => lodestar_core::id::BattleId::from_parts(1, [1; 10]).to_string(),
            other => panic!("{other}: a parameter that this test does not know"),
        };
        path = path.replace(&format!("{{{name}}}"), &id);
    }
    path
}

/// A body that the owner, or the owner's machine, could send to a route.
async fn body_of(scene: &Scene, route: &Route) -> Vec<u8> {
    let machine = &scene.machine;
    let stated = |envelope: Envelope| serde_json::to_vec(&json!({"envelope": envelope})).unwrap();
    match (route.method, route.path) {
        ("POST", "/v1/devices") => json!({"name": "planted"}).to_string().into(),
        ("PUT", "/v1/devices/{device}/key") => {
            let keys = (scene.rogue.key.public(), scene.rogue.log_key.public());
            json!({"key": keys.0, "log_key": keys.1}).to_string().into()
        }
        ("POST", "/v1/devices/{device}/challenge/response") => {
            stated(machine.says(machine.response()).unwrap())
        }
        ("POST", "/v1/devices/{device}/heartbeats") => {
            stated(machine.says(machine.heartbeat(&[]).unwrap()).unwrap())
        }
        ("POST", "/v1/devices/{device}/rotation") => {
            let new = (&*scene.rogue.key, &*scene.rogue.log_key);
            stated(scene.owner.rotation(machine, new).unwrap())
        }
        ("POST", "/v1/orders") => stated(scene.owner.ordered(Account::approval(machine)).unwrap()),
        ("POST", "/v1/agents" | "/v1/runners") => json!({"name": "planted"}).to_string().into(),
        ("POST", "/v1/tokens") => json!({"kind": "device", "device": machine.id})
            .to_string()
            .into(),
        ("POST", "/v1/runs") => serde_json::to_vec(&Machine::asking(scene.made)).unwrap(),
        ("POST", "/v1/runs/{run}/checkpoints") => json!({"note": "a note"}).to_string().into(),
        ("PUT", "/v1/runs/{run}/bundle") => b"{}\nbytes".to_vec(),
        ("POST", "/v1/runs/{run}/attestations") => {
            let ran = machine.work(&scene.best).await.unwrap();
            let (_, packed) = ran.packed().unwrap();
            let word = machine.word(&scene.best, &ran, &packed).unwrap();
            stated(Envelope::attest(&word, &machine.key).unwrap())
        }
        ("POST", "/v1/submissions") => json!({"content": sha256(b"x"), "run": scene.best.run})
            .to_string()
            .into(),
        ("POST", "/v1/submissions/{submission}/runs") => {
            json!({"run": scene.best.run}).to_string().into()
        }
        ("POST", _) | ("PUT", _) => match route.takes {
            lodestar_gateway::http::Takes::Nothing => Vec::new(),
            _ => panic!(
                "{} {}: a body that this test does not know",
                route.method, route.path
            ),
        },
        _ => Vec::new(),
    }
}

fn post<'a>(route: &Route, path: &'a str, body: Vec<u8>) -> Post<'a> {
    let post = Post::new(route.method, path);
    match route.takes {
        lodestar_gateway::http::Takes::Nothing => post,
        lodestar_gateway::http::Takes::Json(_) => post.json(body),
        lodestar_gateway::http::Takes::Bytes(_) => post.bytes(body),
    }
}

/// Every public route, with no token, with none that there is, and with every kind of another account's.
async fn tokens(scene: &Scene) {
    let what = "other account's device, run, runner or token";
    let (tally, address) = (&scene.tally, scene.fleet.address());
    let tokens = scene.owner.client.tokens(None).await.unwrap();
    let enrol = wire::MakeToken {
        kind: wire::TokenKind::Enrol,
        device: None,
    };
    let hers = scene.mallory.client.make_token(&enrol).await.unwrap();
    let revoked = scene.mallory.client.make_token(&enrol).await.unwrap();
    scene.mallory.client.revoke_token(revoked.id).await.unwrap();
    let guessed = lodestar_gateway::token::TokenText::from_bytes([7; 32]);
    let public = routes()
        .into_iter()
        .filter(|route| route.face == Face::Public);
    for route in public.filter(|route| route.who != Who::Anybody) {
        let path = path_of(scene, &route, &tokens);
        let body = body_of(scene, &route).await;
        let ask = |authorization: Option<String>| {
            let mut post = post(&route, &path, body.clone());
            post.authorization = authorization;
            async move { post.send(address).await }
        };
        let bearer = |token: &str| Some(format!("Bearer {token}"));
        let missing = [Code::TokenMissing];
        tally.refused(what, ask(None).await, &missing);
        let basic = Some(format!("Basic {}", scene.owner.token));
        tally.refused(what, ask(basic).await, &missing);
        for none in [
            "",
            "lsgw_",
            "null",
            guessed.expose(),
            &revoked.token,
            &scene.owner.token[1..],
        ] {
            let codes = [Code::TokenInvalid, Code::TokenMissing];
            tally.refused(what, ask(bearer(none)).await, &codes);
        }
        let opens = |owner: bool, device: bool, enrol: bool| match route.who {
            Who::Owner => owner,
            Who::OwnerOrDevice => owner || device,
            Who::OwnerOrEnrol => owner || enrol,
            Who::Device => device,
            Who::Anybody | Who::Platform => false,
        };
        // What she may ask of her own is hers; what names the owner's is not.
        let names_it = route.parameters().next().is_some()
            || matches!(
                route.path,
                "/v1/orders" | "/v1/runs" | "/v1/submissions" | "/v1/tokens"
            ) && route.method == "POST";
        for (token, fits) in [
            (&scene.mallory.token, opens(true, false, false)),
            (&scene.rogue.token, opens(false, true, false)),
            (&hers.token, opens(false, false, true)),
            (&scene.machine.token, false),
        ] {
            if token == &scene.machine.token && opens(false, true, false) {
                continue;
            }
            match (fits, names_it) {
                (false, _) => tally.refused(what, ask(bearer(token)).await, &[Code::TokenKind]),
                (true, true) => tally.refused(
                    what,
                    ask(bearer(token)).await,
                    &[
                        Code::DeviceUnknown,
                        Code::OtherDevice,
                        Code::RunUnknown,
                        Code::SubmissionUnknown,
                        Code::TokenUnknown,
                        Code::TermsUnknown,
                        Code::AgentUnknown,
                        Code::RunnerUnknown,
                        Code::BattleUnknown,
                        Code::SignatureInvalid,
                        Code::CheckpointInvalid,
                        Code::EnvelopeMalformed,
                        Code::StatementMismatch,
                    ],
                ),
                (true, false) => {}
            }
        }
    }
}

/// The platform's routes are not there, whatever is shown.
async fn platform(scene: &Scene) {
    let what = "platform routes over TCP";
    let (tally, address) = (&scene.tally, scene.fleet.address());
    let tokens = scene.owner.client.tokens(None).await.unwrap();
    for route in routes()
        .into_iter()
        .filter(|route| route.face == Face::Platform)
    {
        let path = path_of(scene, &route, &tokens);
        for token in [
            &scene.owner.token,
            &scene.machine.token,
            &scene.mallory.token,
        ] {
            let post = Post::new(route.method, &path).token(token).json("{}");
            tally.refused(what, post.send(address).await, &[Code::NoSuchRoute]);
        }
    }
    for path in [
        "/",
        "/v2/health",
        "/v1",
        "/v1/../v1/platform/battles",
        "/v1//devices",
        "/admin.sock",
    ] {
        let post = Post::new("GET", path).token(&scene.owner.token);
        tally.refused(what, post.send(address).await, &[Code::NoSuchRoute]);
    }
    for (method, path) in [
        ("PATCH", "/v1/devices"),
        ("DELETE", "/v1/runs"),
        ("TRACE", "/v1/health"),
    ] {
        let post = Post::new(method, path).token(&scene.owner.token);
        tally.refused(what, post.send(address).await, &[Code::MethodNotAllowed]);
    }
}

/// Her run, with something of the owner's in it.
async fn borrowed(scene: &Scene) {
    let what = "runs made of what is another account's";
    let (tally, rogue) = (&scene.tally, &scene.rogue);
    let (hers, others) = (scene.hers, scene.made);
    let codes = [Code::AgentUnknown, Code::RunnerUnknown, Code::TermsUnknown];
    for (agent, runner, terms) in [
        (others.agent, hers.runner, hers.terms),
        (hers.agent, others.runner, hers.terms),
        (hers.agent, hers.runner, others.terms),
        (others.agent, others.runner, others.terms),
    ] {
        let mut asked = Machine::asking(hers);
        (asked.agent, asked.runner, asked.terms) = (agent, runner, terms);
        tally.refused(what, rogue.register_as(asked).await, &codes);
    }
    // The owner's run, vouched for by her machine, whichever names it uses.
    let job = scene.machine.register(others).await.unwrap();
    let ran = scene.machine.work(&job).await.unwrap();
    let (word, _) = scene.machine.deliver(&job, &ran).await.unwrap();
    let mut naming = word.clone();
    naming.predicate.key_id = rogue.key.public().key_id();
    let none = Claims::default();
    tally.refused(
        what,
        rogue.vouch(job.run, &naming, none).await,
        &[Code::RunUnknown],
    );
    naming.predicate.device = rogue.id;
    naming.predicate.account = scene.mallory.id;
    tally.refused(
        what,
        rogue.vouch(job.run, &naming, none).await,
        &[Code::RunUnknown],
    );
    // Nor by another machine of the owner's own: a run is the device's that registered it.
    let second = scene.owner.approved("beside").await.unwrap();
    let only = [Code::OtherDevice];
    let note = ran.note().unwrap();
    tally.refused(what, second.client.checkpoint(job.run, &note).await, &only);
    let (bytes, packed) = ran.packed().unwrap();
    tally.refused(what, second.send(&job, &bytes, &packed).await, &only);
    let theirs = second.word(&job, &ran, &packed).unwrap();
    tally.refused(what, second.vouch(job.run, &theirs, none).await, &only);
    assert_eq!(scene.level(&scene.owner, &job).await, None);
    let attested = scene.machine.vouch(job.run, &word, none).await.unwrap();
    assert_eq!(
        attested.level,
        lodestar_core::execution::ExecutionLevel::FullyTrusted
    );
    let handed =
        |run, battle: Option<Value>| json!({"content": sha256(b"y"), "run": run, "battle": battle});
    let post = Post::new("POST", "/v1/submissions").token(&scene.mallory.token);
    let answer = post
        .json(handed(job.run, None).to_string())
        .send(scene.fleet.address())
        .await;
    tally.refused(what, answer, &[Code::RunUnknown]);
}
