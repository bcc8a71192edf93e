//! What somebody tries who is not who they say, or has only half of what it takes. Every attempt has its code,
//! stands in the log under it, and moves nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use lodestar_core::device::DeviceLevel;
use lodestar_core::digest::sha256;
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::statement::{Attestation, Envelope, Order, OwnerOrder};
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::ran::ticket;
use crate::world::{
    HOUR, Machine, Owner, World, attest, issued, key, name, nonce, on_both, signed, stated,
};

/// Attempts, by what they were refused with.
#[derive(Default)]
struct Tally(RefCell<BTreeMap<&'static str, u32>>);

impl Tally {
    fn expect(&self, what: &str, found: Option<Code>, expected: Code) {
        assert_eq!(found, Some(expected), "{what}");
        *self.0.borrow_mut().entry(expected.as_str()).or_default() += 1;
    }

    fn print(&self, what: &str) {
        let counts = self.0.borrow();
        let all: u32 = counts.values().sum();
        println!("{what}: {all} attempts, all refused: {counts:?}");
    }

    /// That the log has each of them under its code.
    fn stands_in(&self, events: &[(String, Value)]) {
        for (code, count) in self.0.borrow().iter() {
            let logged = events
                .iter()
                .filter(|(_, payload)| payload["code"] == *code);
            assert!(logged.count() >= *count as usize, "{code}: {count}");
        }
    }
}

async fn level(owner: &Owner, machine: &Machine) -> DeviceLevel {
    owner.client.device(machine.id).await.unwrap().level
}

#[tokio::test]
async fn forged_and_replayed_statements_move_nothing() {
    on_both(|place| async move {
        let mut world = World::on(place).await;
        let (anna, mallory) = (
            world.owner("anna", 10).await,
            world.owner("mallory", 12).await,
        );
        let machine = anna.device(&world, "laptop", 20).await;
        let other = mallory.device(&world, "laptop", 30).await;
        let tally = Tally::default();
        let send = async |path: &str, token: &str, envelope: &Envelope| {
            world.post(path, token, &stated(envelope)).await.code()
        };
        let answers = format!("/v1/devices/{}/challenge/response", machine.id);
        let challenge = machine.challenge.unwrap();
        let now = world.now();
        let answer = signed(machine.answering(challenge), &machine.key, now);
        // The challenge, by everybody else and in every other way.
        let forged = signed(machine.answering(challenge), &other.key, now);
        tally.expect(
            "another's key",
            send(&answers, &machine.token, &forged).await,
            Code::SignatureInvalid,
        );
        let forged = signed(machine.answering(challenge), &anna.key, now);
        tally.expect(
            "the owner's key",
            send(&answers, &machine.token, &forged).await,
            Code::SignatureInvalid,
        );
        tally.expect(
            "another's token",
            send(&answers, &other.token, &answer).await,
            Code::OtherDevice,
        );
        tally.expect(
            "an owner's token",
            send(&answers, &anna.token, &answer).await,
            Code::TokenKind,
        );
        let beat = machine.beat(&[]);
        tally.expect(
            "a heartbeat",
            send(&answers, &machine.token, &beat).await,
            Code::StatementKind,
        );
        let mut subject = machine.answering(challenge);
        subject.device = other.id;
        let envelope = signed(subject, &machine.key, now);
        tally.expect(
            "another device",
            send(&answers, &machine.token, &envelope).await,
            Code::StatementMismatch,
        );
        let mut subject = machine.answering(challenge);
        subject.account = mallory.account;
        let envelope = signed(subject, &machine.key, now);
        tally.expect(
            "another account",
            send(&answers, &machine.token, &envelope).await,
            Code::StatementMismatch,
        );
        let envelope = signed(machine.answering(nonce()), &machine.key, now);
        tally.expect(
            "another nonce",
            send(&answers, &machine.token, &envelope).await,
            Code::ChallengeWrong,
        );
        // Clocks that are off, either way; and a statement that has expired.
        let late = world.now();
        world.hands.forward(Duration::from_secs(301));
        let envelope = signed(machine.answering(challenge), &machine.key, late);
        tally.expect(
            "too old",
            send(&answers, &machine.token, &envelope).await,
            Code::ClockSkew,
        );
        let early = world.now().checked_add(Duration::from_secs(310)).unwrap();
        let envelope = signed(machine.answering(challenge), &machine.key, early);
        tally.expect(
            "too new",
            send(&answers, &machine.token, &envelope).await,
            Code::ClockSkew,
        );
        let mut expired = issued(machine.answering(challenge), &machine.key, world.now());
        expired.expires_at = Some(world.now());
        let envelope = Envelope::sign(&expired, &machine.key).unwrap();
        tally.expect(
            "expired",
            send(&answers, &machine.token, &envelope).await,
            Code::StatementExpired,
        );
        assert_eq!(level(&anna, &machine).await, DeviceLevel::Pending);
        let answer = signed(machine.answering(challenge), &machine.key, world.now());
        assert_eq!(send(&answers, &machine.token, &answer).await, None);
        tally.expect(
            "again",
            send(&answers, &machine.token, &answer).await,
            Code::NonceReused,
        );
        anna.approve(&machine).await.unwrap();

        // Heartbeats.
        let beats = format!("/v1/devices/{}/heartbeats", machine.id);
        let beat = machine.beat(&[]);
        assert_eq!(send(&beats, &machine.token, &beat).await, None);
        tally.expect(
            "again",
            send(&beats, &machine.token, &beat).await,
            Code::NonceReused,
        );
        // The same statement with one more signature on it is the same statement.
        let more = beat
            .cosign(
                &beat
                    .unverified::<lodestar_core::statement::Heartbeat>()
                    .unwrap(),
                &key(77),
            )
            .unwrap();
        tally.expect(
            "with more on it",
            send(&beats, &machine.token, &more).await,
            Code::NonceReused,
        );
        tally.expect(
            "an answer",
            send(&beats, &machine.token, &answer).await,
            Code::StatementKind,
        );
        let mut subject = machine.beating(&[]);
        subject.account = mallory.account;
        let envelope = signed(subject, &machine.key, world.now());
        tally.expect(
            "another account",
            send(&beats, &machine.token, &envelope).await,
            Code::StatementMismatch,
        );
        let elsewhere = format!("/v1/devices/{}/heartbeats", other.id);
        let beat = machine.beat(&[]);
        tally.expect(
            "of another device",
            send(&elsewhere, &other.token, &beat).await,
            Code::SignatureInvalid,
        );
        tally.expect(
            "to another device",
            send(&elsewhere, &machine.token, &beat).await,
            Code::OtherDevice,
        );
        // One nonce on two devices: each has its own.
        let shared = nonce();
        for one in [&machine, &other] {
            let mut said = issued(one.beating(&[]), &one.key, world.now());
            said.nonce = shared;
            let envelope = Envelope::sign(&said, &one.key).unwrap();
            let path = format!("/v1/devices/{}/heartbeats", one.id);
            assert_eq!(send(&path, &one.token, &envelope).await, None);
            tally.expect(
                "again",
                send(&path, &one.token, &envelope).await,
                Code::NonceReused,
            );
        }
        tally.print("challenges and heartbeats");
        tally.stands_in(&world.events().await);
    })
    .await;
}

#[tokio::test]
async fn what_takes_the_owners_key_is_not_done_by_any_token() {
    on_both(|place| async move {
        let mut world = World::on(place).await;
        let (anna, mallory) = (
            world.owner("anna", 10).await,
            world.owner("mallory", 12).await,
        );
        let machine = anna.device(&world, "laptop", 20).await;
        machine.answer().await.unwrap();
        let other = mallory.approved(&world, "laptop", 30).await;
        let (runner, theirs) = (anna.runner("local").await, mallory.runner("local").await);
        let tally = Tally::default();
        let hand_in = async |token: &str, envelope: &Envelope| {
            world
                .post("/v1/orders", token, &stated(envelope))
                .await
                .code()
        };
        let order = |order: Order, account, key: &lodestar_core::key::SecretKey| {
            signed(OwnerOrder { account, order }, key, world.now())
        };
        let approve = || Order::Approve {
            device: machine.id,
            key: machine.key.public(),
            log_key: machine.log_key.public(),
        };
        let orders = || {
            vec![
                approve(),
                Order::Bind {
                    device: machine.id,
                    runner,
                },
                Order::Unbind {
                    device: machine.id,
                    runner,
                },
                Order::Revoke {
                    compromised_since: None,
                    device: machine.id,
                    reason: "no".to_owned(),
                },
                Order::Pause {
                    device: machine.id,
                    reason: "no".to_owned(),
                },
                Order::Resume { device: machine.id },
                Order::RegisterTerms {
                    terms: sha256(b"terms"),
                },
            ]
        };
        for one in orders() {
            let what = one.name();
            // With the device's token, whoever signed it.
            let right = order(one.clone(), anna.account, &anna.key);
            tally.expect(what, hand_in(&machine.token, &right).await, Code::TokenKind);
            // Signed by the device itself, by another owner, by nobody.
            let by_device = order(one.clone(), anna.account, &machine.key);
            tally.expect(
                what,
                hand_in(&anna.token, &by_device).await,
                Code::SignatureInvalid,
            );
            let by_other = order(one.clone(), anna.account, &mallory.key);
            tally.expect(
                what,
                hand_in(&anna.token, &by_other).await,
                Code::SignatureInvalid,
            );
            tally.expect(
                what,
                hand_in(&mallory.token, &by_other).await,
                Code::StatementMismatch,
            );
            // An owner's order under another account's token, and the other way round.
            tally.expect(
                what,
                hand_in(&mallory.token, &right).await,
                Code::SignatureInvalid,
            );
        }
        assert_eq!(level(&anna, &machine).await, DeviceLevel::Pending);
        // Another owner's orders about it are about nothing that they have.
        for one in orders().into_iter().filter(|one| one.device().is_some()) {
            let what = one.name();
            let theirs = order(one, mallory.account, &mallory.key);
            tally.expect(
                what,
                hand_in(&mallory.token, &theirs).await,
                Code::DeviceUnknown,
            );
        }
        let across = order(
            Order::Bind {
                device: other.id,
                runner,
            },
            mallory.account,
            &mallory.key,
        );
        tally.expect(
            "bind",
            hand_in(&mallory.token, &across).await,
            Code::RunnerUnknown,
        );
        let across = order(
            Order::Bind {
                device: machine.id,
                runner: theirs,
            },
            anna.account,
            &anna.key,
        );
        tally.expect(
            "bind",
            hand_in(&anna.token, &across).await,
            Code::RunnerUnknown,
        );
        // Rotations: by the device alone, by the owner alone, of another's device.
        let new = key(40);
        let rotation = issued(machine.rotating(&new, &key(41)), &anna.key, world.now());
        let path = format!("/v1/devices/{}/rotation", machine.id);
        let rotate = async |token: &str, envelope: &Envelope| {
            world.post(&path, token, &stated(envelope)).await.code()
        };
        let whole = Envelope::sign_all(&rotation, &[&anna.key, &machine.key, &new]).unwrap();
        tally.expect(
            "rotate",
            rotate(&machine.token, &whole).await,
            Code::TokenKind,
        );
        tally.expect(
            "rotate",
            rotate(&mallory.token, &whole).await,
            Code::DeviceUnknown,
        );
        let alone = issued(machine.rotating(&new, &key(41)), &machine.key, world.now());
        let alone = Envelope::sign_all(&alone, &[&machine.key, &new]).unwrap();
        tally.expect(
            "rotate",
            rotate(&anna.token, &alone).await,
            Code::SignatureInvalid,
        );
        // Everything else that an owner's token opens and a device's does not.
        for (method, path) in [
            ("GET", "/v1/devices".to_owned()),
            ("POST", "/v1/devices".to_owned()),
            ("GET", "/v1/tokens".to_owned()),
            ("POST", "/v1/tokens".to_owned()),
            ("GET", "/v1/account".to_owned()),
            ("GET", "/v1/runs".to_owned()),
            ("POST", "/v1/agents".to_owned()),
            ("POST", "/v1/runners".to_owned()),
            ("POST", "/v1/submissions".to_owned()),
            ("PUT", format!("/v1/devices/{}/key", machine.id)),
        ] {
            let form = Some("application/json");
            let answer = world
                .raw(method, &path, Some(&machine.token), form, "")
                .await;
            tally.expect(&path, answer.code(), Code::TokenKind);
        }
        anna.approve(&machine).await.unwrap();
        // Handed in again, an order is not obeyed again.
        let revoke = order(
            Order::Pause {
                device: machine.id,
                reason: "x".to_owned(),
            },
            anna.account,
            &anna.key,
        );
        assert_eq!(hand_in(&anna.token, &revoke).await, None);
        tally.expect(
            "again",
            hand_in(&anna.token, &revoke).await,
            Code::NonceReused,
        );
        // And one that was kept for later is too old.
        let kept = order(
            Order::Resume { device: machine.id },
            anna.account,
            &anna.key,
        );
        world.hands.forward(Duration::from_secs(301));
        tally.expect("kept", hand_in(&anna.token, &kept).await, Code::ClockSkew);
        tally.print("orders");
        tally.stands_in(&world.events().await);
    })
    .await;
}

#[tokio::test]
async fn what_is_another_accounts_is_not_there() {
    on_both(|place| async move {
        let mut lab = Lab::approved(place).await;
        let mallory = lab.world.owner("mallory", 12).await;
        let other = mallory.approved(&lab.world, "laptop", 30).await;
        let (agent, runner) = (mallory.agent("helper").await, mallory.runner("local").await);
        let made = lab.make(true).await;
        let tally = Tally::default();
        // With their own device and everything of Anna's.
        let register = async |asked: &wire::RegisterRun| {
            let done = other.client.register_run(asked).await;
            done.unwrap_err().code()
        };
        let asked = lab.registering(true);
        tally.expect("her terms", register(&asked).await, Code::TermsUnknown);
        let theirs = {
            let template = lab.workshop.run(ticket(2), crate::lab::honest).await;
            mallory.register_terms(&template).await
        };
        let mut asked = wire::RegisterRun {
            terms: theirs,
            ..asked
        };
        tally.expect("her agent", register(&asked).await, Code::AgentUnknown);
        asked.agent = agent;
        tally.expect("her runner", register(&asked).await, Code::RunnerUnknown);
        asked.runner = runner;
        assert!(other.client.register_run(&asked).await.is_ok());
        // Her run.
        let run = made.run.id;
        let shown = other.client.run(run).await.unwrap_err().code();
        tally.expect("show", shown, Code::RunUnknown);
        let shown = mallory.client.run(run).await.unwrap_err().code();
        tally.expect("show", shown, Code::RunUnknown);
        let note = made.ran.note_at(3);
        let sent = other
            .client
            .checkpoint(run, &note)
            .await
            .unwrap_err()
            .code();
        tally.expect("checkpoint", sent, Code::RunUnknown);
        let (statement, bytes) = other.bundle(run, &made.ran);
        let sent = other.client.bundle(run, &statement, &bytes).await;
        tally.expect("bundle", sent.unwrap_err().code(), Code::RunUnknown);
        let said = other.attesting(&made.run, &made.ran);
        let envelope = Envelope::attest(&said, &other.key).unwrap();
        let sent = other.client.attest(run, &attest(envelope)).await;
        tally.expect("attest", sent.unwrap_err().code(), Code::RunUnknown);
        let work = wire::HandIn {
            content: sha256(b"work"),
            run: Some(run),
            battle: None,
        };
        let submitted = mallory.client.hand_in(&work);
        tally.expect(
            "submit",
            submitted.await.unwrap_err().code(),
            Code::RunUnknown,
        );
        // Another device of Anna's own may not speak for it either.
        let second = lab.owner.approved(&lab.world, "second", 50).await;
        let sent = second
            .client
            .checkpoint(run, &note)
            .await
            .unwrap_err()
            .code();
        tally.expect("checkpoint", sent, Code::OtherDevice);
        let said = second.attesting(&made.run, &made.ran);
        let envelope = Envelope::attest(&said, &second.key).unwrap();
        let sent = second.client.attest(run, &attest(envelope)).await;
        tally.expect("attest", sent.unwrap_err().code(), Code::OtherDevice);
        // Her device, her tokens, her terms.
        let shown = mallory.client.device(lab.machine.id).await;
        tally.expect("device", shown.unwrap_err().code(), Code::DeviceUnknown);
        let shown = mallory.client.terms(lab.terms).await;
        tally.expect("terms", shown.unwrap_err().code(), Code::TermsUnknown);
        let tokens = lab.owner.client.tokens(None).await.unwrap().items;
        let gone = mallory.client.revoke_token(tokens[0].id).await;
        tally.expect("token", gone.unwrap_err().code(), Code::TokenUnknown);
        let made_for = wire::MakeToken {
            kind: wire::TokenKind::Device,
            device: Some(lab.machine.id),
        };
        let made_for = mallory.client.make_token(&made_for).await;
        tally.expect("token", made_for.unwrap_err().code(), Code::DeviceUnknown);
        assert!(lab.owner.client.account().await.is_ok());
        tally.print("other accounts' things");
        tally.stands_in(&lab.world.events().await);
    })
    .await;
}

#[tokio::test]
async fn every_field_of_an_attestation_is_compared() {
    on_both(|place| async move {
        let mut lab = Lab::trusted(place).await;
        let made = lab.make(true).await;
        lab.beat().await;
        lab.machine.ship(made.run.id, &made.ran).await;
        let second = lab.make(true).await;
        lab.machine.ship(second.run.id, &second.ran).await;
        let tally = Tally::default();
        type Change = Box<dyn Fn(&mut Attestation)>;
        let other = Lab::registering(&lab, true);
        let (agent, runner) = (
            lab.owner.agent("other").await,
            lab.owner.runner("other").await,
        );
        let changes: Vec<(&str, Change)> = vec![
            (
                "session",
                Box::new(|it| it.session = "another".parse().unwrap()),
            ),
            ("root", Box::new(|it| it.root = sha256(b"x"))),
            (
                "account",
                Box::new(|it| {
                    it.predicate.account = lodestar_core::id::AccountId::from_parts(1, [1; 10]);
                }),
            ),
            ("agent", Box::new(move |it| it.predicate.agent = agent)),
            ("bundle", Box::new(|it| it.predicate.bundle = sha256(b"x"))),
            (
                "device",
                Box::new(|it| {
                    it.predicate.device = lodestar_core::id::DeviceId::from_parts(1, [1; 10]);
                }),
            ),
            (
                "lens_hash",
                Box::new(|it| it.predicate.lens_hash = Some(sha256(b"x"))),
            ),
            ("lens_hash", Box::new(|it| it.predicate.lens_hash = None)),
            ("policy", Box::new(|it| it.predicate.policy = sha256(b"x"))),
            (
                "run",
                Box::new(|it| {
                    it.predicate.run = lodestar_core::id::RunId::from_parts(1, [1; 10]);
                }),
            ),
            ("run_nonce", Box::new(|it| it.predicate.run_nonce = nonce())),
            ("runner", Box::new(move |it| it.predicate.runner = runner)),
            ("size", Box::new(|it| it.predicate.size += 1)),
            ("size", Box::new(|it| it.predicate.size -= 1)),
            (
                "workflow_hash",
                Box::new(|it| it.predicate.workflow_hash = None),
            ),
            (
                "workflow_hash",
                Box::new(move |it| it.predicate.workflow_hash = other.lens_hash),
            ),
        ];
        let path = format!("/v1/runs/{}/attestations", made.run.id);
        for (field, change) in &changes {
            let mut said = lab.machine.attesting(&made.run, &made.ran);
            change(&mut said);
            let envelope = Envelope::attest(&said, &lab.machine.key).unwrap();
            let answer = lab
                .world
                .post(&path, &lab.machine.token, &stated(&envelope))
                .await;
            tally.expect(field, answer.code(), Code::StatementMismatch);
            assert_eq!(answer.body["error"]["field"], *field);
        }
        // Dates and keys.
        let mut said = lab.machine.attesting(&made.run, &made.ran);
        said.predicate.issued_at = said
            .predicate
            .issued_at
            .checked_add(Duration::from_secs(310))
            .unwrap();
        let envelope = Envelope::attest(&said, &lab.machine.key).unwrap();
        let sent = lab
            .machine
            .client
            .attest(made.run.id, &attest(envelope))
            .await;
        tally.expect("issued_at", sent.unwrap_err().code(), Code::ClockSkew);
        // One run's attestation for another run.
        let said = lab.machine.attesting(&second.run, &second.ran);
        let envelope = Envelope::attest(&said, &lab.machine.key).unwrap();
        let sent = lab
            .machine
            .client
            .attest(made.run.id, &attest(envelope.clone()))
            .await;
        tally.expect(
            "another run",
            sent.unwrap_err().code(),
            Code::StatementMismatch,
        );
        lab.machine
            .client
            .attest(second.run.id, &attest(envelope.clone()))
            .await
            .unwrap();
        let sent = lab
            .machine
            .client
            .attest(second.run.id, &attest(envelope))
            .await;
        tally.expect("again", sent.unwrap_err().code(), Code::AttestationReused);
        // A new statement under a nonce that was used.
        let mut again = lab.machine.attesting(&second.run, &second.ran);
        again.predicate.nonce = said.predicate.nonce;
        let envelope = Envelope::attest(&again, &lab.machine.key).unwrap();
        let sent = lab
            .machine
            .client
            .attest(second.run.id, &attest(envelope))
            .await;
        tally.expect("nonce", sent.unwrap_err().code(), Code::NonceReused);
        let run = lab.owner.client.run(made.run.id).await.unwrap();
        assert_eq!(run.evaluation, None, "nothing came of any of it");
        assert_eq!(level(&lab.owner, &lab.machine).await, DeviceLevel::Trusted);
        tally.print("attestations");
        tally.stands_in(&lab.world.events().await);
    })
    .await;
}

#[tokio::test]
async fn a_bundle_that_is_not_what_was_signed_for_raises_nothing() {
    on_both(|place| async move {
        let mut lab = Lab::trusted(place).await;
        let tally = Tally::default();
        let (made, second) = (lab.make(true).await, lab.make(true).await);
        lab.beat().await;
        let run = made.run.id;
        let client = &lab.machine.client;
        client.checkpoint(run, &made.ran.note_at(3)).await.unwrap();
        client
            .checkpoint(second.run.id, &second.ran.note_at(3))
            .await
            .unwrap();
        let (statement, bytes) = lab.machine.bundle(run, &made.ran);
        let send = async |statement: &Envelope, bytes: &[u8]| {
            let sent = client.bundle(run, statement, bytes).await;
            sent.unwrap_err().code()
        };
        let fresh = || lab.machine.bundle(run, &made.ran).0;
        tally.expect(
            "cut",
            send(&statement, &bytes[..bytes.len() - 1]).await,
            Code::BundleMismatch,
        );
        let mut longer = bytes.clone();
        longer.push(b'x');
        tally.expect(
            "longer",
            send(&fresh(), &longer).await,
            Code::BundleMismatch,
        );
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        tally.expect(
            "changed",
            send(&fresh(), &changed).await,
            Code::BundleMismatch,
        );
        let (others, swapped) = lab.machine.bundle(second.run.id, &second.ran);
        tally.expect(
            "swapped",
            send(&fresh(), &swapped).await,
            Code::BundleMismatch,
        );
        tally.expect(
            "another run's",
            send(&others, &swapped).await,
            Code::StatementMismatch,
        );
        let said: lodestar_core::statement::RunBundle = fresh().unverified().unwrap().subject;
        let forged = signed(said.clone(), &key(66), lab.world.now());
        tally.expect(
            "forged",
            send(&forged, &bytes).await,
            Code::SignatureInvalid,
        );
        let path = format!("/v1/runs/{run}/bundle");
        let form = Some("application/octet-stream");
        let token = Some(lab.machine.token.as_str());
        for body in ["", "\n", "{}\n", "no line"] {
            let answer = lab.world.raw("PUT", &path, token, form, body).await;
            tally.expect(body, answer.code(), Code::EnvelopeMalformed);
        }
        // Another run's log, signed for as this one's: taken, and worth nothing.
        let (_, packed) = second.ran.packed();
        let subject = lodestar_core::statement::RunBundle {
            bundle: packed.bundle,
            bytes: packed.bytes,
            root: packed.root,
            size: packed.size,
            ..said
        };
        let statement = signed(subject, &lab.machine.key, lab.world.now());
        client.bundle(run, &statement, &swapped).await.unwrap();
        let mut word = lab.machine.attesting(&made.run, &second.ran);
        let sent = client
            .attest(
                run,
                &attest(Envelope::attest(&word, &lab.machine.key).unwrap()),
            )
            .await;
        tally.expect(
            "another session",
            sent.unwrap_err().code(),
            Code::StatementMismatch,
        );
        word.session = made.ran.session().clone();
        word.predicate.nonce = nonce();
        let envelope = Envelope::attest(&word, &lab.machine.key).unwrap();
        let attested = client.attest(run, &attest(envelope)).await.unwrap();
        assert_eq!(
            attested.level,
            ExecutionLevel::RunnerVerified,
            "{attested:?}"
        );
        assert!(!attested.found.gateway_verified);
        // A log that is older than the run: there is no ticket in it, or another's.
        let older = lab.make(true).await;
        let replayed = lab.workshop.run(ticket(9), crate::lab::honest).await;
        lab.machine.ship(older.run.id, &replayed).await;
        let attested = lab.machine.attest(&older.run, &replayed).await.unwrap();
        assert_eq!(
            attested.level,
            ExecutionLevel::RunnerVerified,
            "{attested:?}"
        );
        // Checkpoints that are none.
        let third = lab.make(true).await;
        let note = async |note: &str| {
            let sent = client.checkpoint(third.run.id, note).await;
            sent.unwrap_err().code()
        };
        let good = third.ran.note_at(4);
        tally.expect("none", note("no checkpoint").await, Code::CheckpointInvalid);
        let tampered = good.replace("\n4\n", "\n5\n");
        tally.expect("tampered", note(&tampered).await, Code::CheckpointInvalid);
        client.checkpoint(third.run.id, &good).await.unwrap();
        tally.expect("again", note(&good).await, Code::CheckpointBehind);
        tally.expect(
            "behind",
            note(&third.ran.note_at(2)).await,
            Code::CheckpointBehind,
        );
        tally.expect(
            "another log's",
            note(&replayed.note_at(5)).await,
            Code::CheckpointBehind,
        );
        tally.print("bundles and checkpoints");
        tally.stands_in(&lab.world.events().await);
    })
    .await;
}

#[tokio::test]
async fn terms_that_nobody_signed_are_not_registered() {
    on_both(|place| async move {
        let mut world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let workshop = crate::ran::Workshop::new();
        let ran = workshop.run(ticket(1), crate::lab::honest).await;
        let document: Value = serde_json::from_slice(&ran.terms.document().unwrap()).unwrap();
        let tally = Tally::default();
        let register = async |document: &Value, digest| {
            let asked = json!({
                "envelope": owner.signed(Order::RegisterTerms { terms: digest }),
                "terms": document,
            });
            world.post("/v1/orders", &owner.token, &asked).await.code()
        };
        let digest_of =
            |document: &Value| sha256(&lodestar_core::canonical::to_vec(document).unwrap());
        type Change = fn(&mut Value);
        let changes: [(&str, Code, Change); 6] = [
            ("an edited policy", Code::PolicyUnsigned, |terms| {
                terms["policy"]["text"] = json!("permit (principal, action, resource);");
            }),
            ("other keys", Code::PolicyUnsigned, |terms| {
                terms["policy"]["keys"] = json!([key(9).public()]);
            }),
            ("no keys", Code::PolicyUnsigned, |terms| {
                terms["policy"]["keys"] = json!([])
            }),
            ("no signature", Code::TermsMalformed, |terms| {
                terms["policy"].as_object_mut().unwrap().remove("signature");
            }),
            ("something more", Code::TermsMalformed, |terms| {
                terms["more"] = json!(1)
            }),
            ("nobody to act", Code::TermsMalformed, |terms| {
                terms["agents"] = json!([])
            }),
        ];
        for (what, code, change) in changes {
            let mut changed = document.clone();
            change(&mut changed);
            let found = register(&changed, digest_of(&changed)).await;
            tally.expect(what, found, code);
        }
        let found = register(&document, sha256(b"others")).await;
        tally.expect("a digest of others", found, Code::StatementMismatch);
        let bare = stated(&owner.signed(Order::RegisterTerms {
            terms: digest_of(&document),
        }));
        let answer = world.post("/v1/orders", &owner.token, &bare).await;
        tally.expect("without them", answer.code(), Code::TermsMissing);
        assert_eq!(register(&document, digest_of(&document)).await, None);
        // Once more is as good as once.
        assert_eq!(register(&document, digest_of(&document)).await, None);
        let all = owner.client.all_terms(None).await.unwrap().items;
        assert_eq!(all.len(), 1);
        let whole = owner.client.terms(all[0].id).await.unwrap();
        assert_eq!(whole.document, document);
        tally.print("terms");
        tally.stands_in(&world.events().await);
    })
    .await;
}

#[tokio::test]
async fn quotes_and_semicolons_are_text() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.approved(&world, "laptop", 20).await;
        let hostile = "'; DROP TABLE devices; --";
        let mut beat = machine.beating(&[]);
        beat.gateway_status = lodestar_core::statement::GatewayStatus::new(hostile).unwrap();
        beat.daemon_version =
            lodestar_core::statement::DaemonVersion::new("\"; SELECT pg_sleep(10); %s $1 \\")
                .unwrap();
        let envelope = signed(beat.clone(), &machine.key, world.now());
        machine
            .client
            .heartbeat(machine.id, &envelope)
            .await
            .unwrap();
        let shown = owner.client.device(machine.id).await.unwrap();
        assert_eq!(shown.gateway_status, hostile);
        assert_eq!(shown.daemon_version, beat.daemon_version.as_str());
        let reason = format!("{hostile} 'x' \u{1f980}");
        let pause = Order::Pause {
            device: machine.id,
            reason,
        };
        owner.order(pause).await.unwrap();
        let asked = wire::Named {
            name: name("a.b_c-d"),
        };
        owner.client.register_agent(&asked).await.unwrap();
        world.hands.forward(HOUR);
        assert!(owner.client.devices(None).await.is_ok());
    })
    .await;
}
