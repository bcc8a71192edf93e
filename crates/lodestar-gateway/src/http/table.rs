//! The one table of routes.

use std::sync::Arc;

use lodestar_core::event::EventType;
use lodestar_replay::terms::MAX_TERMS_LEN;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use super::route::{Asked, Route, Who};
use crate::code::{Code, Refusal};
use crate::service::{Caller, Identity};
use crate::wire;

/// An order with the longest terms.
const ORDER: u64 = MAX_TERMS_LEN as u64 + (64 << 10);

/// The API's own document.
#[derive(Serialize)]
#[serde(transparent)]
struct Document(Arc<Value>);

impl JsonSchema for Document {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OpenApi".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "description": "An OpenAPI document: this one."})
    }
}

/// Whoever has a token.
fn known(asked: &Asked) -> Result<Identity, Refusal> {
    match &asked.caller {
        Caller::Known(identity) => Ok(identity.clone()),
        _ => Err(Refusal::of(Code::TokenMissing)),
    }
}

/// Whether a route is on both faces.
pub(super) fn is_everywhere(route: &Route) -> bool {
    route.who == Who::Anybody
}

/// Every route there is.
pub fn routes() -> Vec<Route> {
    let mut routes = about_the_service();
    routes.extend(devices());
    routes.extend(owners());
    routes.extend(runs());
    routes.extend(submissions());
    routes.extend(platform());
    routes
}

fn about_the_service() -> Vec<Route> {
    let document = std::sync::OnceLock::new();
    let document = Arc::new(document);
    vec![
        Route::get(
            "/v1/health",
            Who::Anybody,
            "Says that the service can decide, and what time it has.",
        )
        .by(|asked| async move { asked.service.health().await }),
        Route::get("/v1/openapi.json", Who::Anybody, "Gives this document.").by(move |_| {
            let document = Arc::clone(&document);
            async move {
                let made = document.get_or_init(|| Arc::new(crate::openapi::document()));
                Ok(Document(Arc::clone(made)))
            }
        }),
    ]
}

fn devices() -> Vec<Route> {
    let refused = EventType::DEVICE_REFUSED;
    vec![
        Route::post(
            "/v1/devices",
            Who::OwnerOrEnrol,
            "Makes a device known. It is pending until its owner approves it.",
        )
        .makes()
        .refused_as(refused)
        .taking(|asked, body: wire::RegisterDevice| async move {
            asked.service.register_device(known(&asked)?, body).await
        }),
        Route::get("/v1/devices", Who::Owner, "Lists the account's devices.")
            .lists()
            .refused_as(refused)
            .by(|asked| async move {
                let (after, limit) = (asked.after()?, asked.listing.limit);
                asked.service.devices(known(&asked)?, after, limit).await
            }),
        Route::get(
            "/v1/devices/{device}",
            Who::OwnerOrDevice,
            "Shows a device.",
        )
        .refused_as(refused)
        .by(|asked| async move {
            let device = asked.parameter("device")?;
            asked.service.device(known(&asked)?, device).await
        }),
        Route::put(
            "/v1/devices/{device}/key",
            Who::Owner,
            "Gives a pending device that has none its keys, and a challenge.",
        )
        .refused_as(refused)
        .taking(|asked, body: wire::SetKeys| async move {
            let device = asked.parameter("device")?;
            asked.service.set_keys(known(&asked)?, device, body).await
        }),
        Route::post(
            "/v1/devices/{device}/challenge",
            Who::OwnerOrDevice,
            "Opens a new challenge, in the place of the one before.",
        )
        .makes()
        .refused_as(refused)
        .by(|asked| async move {
            let device = asked.parameter("device")?;
            asked.service.challenge(known(&asked)?, device).await
        }),
        Route::post(
            "/v1/devices/{device}/challenge/response",
            Who::Device,
            "Takes a device's signed answer to its challenge: a `challenge-response` statement.",
        )
        .refused_as(EventType::DEVICE_CHALLENGE_REFUSED)
        .taking(|asked, body: wire::Stated| async move {
            let (caller, device) = (known(&asked)?, asked.parameter("device")?);
            let service = &asked.service;
            service
                .answer_challenge(caller, device, &body.envelope)
                .await
        }),
        Route::post(
            "/v1/devices/{device}/heartbeats",
            Who::Device,
            "Takes a signed `heartbeat`, and says how the device stands and what it has to obey.",
        )
        .refused_as(EventType::DEVICE_HEARTBEAT_REFUSED)
        .taking(|asked, body: wire::Stated| async move {
            let (caller, device) = (known(&asked)?, asked.parameter("device")?);
            asked
                .service
                .heartbeat(caller, device, &body.envelope)
                .await
        }),
        Route::get(
            "/v1/devices/{device}/directives",
            Who::OwnerOrDevice,
            "Says what a device has to obey: the kill switch, and its owner's pause.",
        )
        .refused_as(refused)
        .by(|asked| async move {
            let device = asked.parameter("device")?;
            asked.service.directives(known(&asked)?, device).await
        }),
        Route::post(
            "/v1/devices/{device}/rotation",
            Who::Owner,
            "Replaces a device's keys, by a `key-rotation` that owner, old and new key signed.",
        )
        .refused_as(refused)
        .taking(|asked, body: wire::Stated| async move {
            let (caller, device) = (known(&asked)?, asked.parameter("device")?);
            asked.service.rotate(caller, device, &body.envelope).await
        }),
    ]
}

fn owners() -> Vec<Route> {
    vec![
        Route::get("/v1/account", Who::Owner, "Shows the account.")
            .by(|asked| async move { asked.service.account(known(&asked)?).await }),
        Route::post(
            "/v1/orders",
            Who::Owner,
            "Carries out an `owner-order`: approve, bind, unbind, revoke, pause, resume, register terms.",
        )
        .up_to(ORDER)
        .refused_as(EventType::DEVICE_REFUSED)
        .taking(|asked, body: wire::HandInOrder| async move {
            asked.service.order(known(&asked)?, body).await
        }),
        Route::get(
            "/v1/terms",
            Who::Owner,
            "Lists the terms that the account registered.",
        )
        .lists()
        .refused_as(EventType::RUN_REFUSED)
        .by(|asked| async move {
            let (after, limit) = (asked.after()?, asked.listing.limit);
            asked.service.all_terms(known(&asked)?, after, limit).await
        }),
        Route::get("/v1/terms/{terms}", Who::Owner, "Shows terms, whole.")
            .refused_as(EventType::RUN_REFUSED)
            .by(|asked| async move {
                let terms = asked.parameter("terms")?;
                asked.service.terms(known(&asked)?, terms).await
            }),
        Route::post("/v1/agents", Who::Owner, "Makes an agent known.")
            .makes()
            .refused_as(EventType::RUN_REFUSED)
            .taking(|asked, body: wire::Named| async move {
                asked.service.register_agent(known(&asked)?, body).await
            }),
        Route::get("/v1/agents", Who::Owner, "Lists the account's agents.")
            .lists()
            .refused_as(EventType::RUN_REFUSED)
            .by(|asked| async move {
                let (after, limit) = (asked.after()?, asked.listing.limit);
                asked.service.agents(known(&asked)?, after, limit).await
            }),
        Route::post("/v1/runners", Who::Owner, "Makes a runner known.")
            .makes()
            .refused_as(EventType::RUN_REFUSED)
            .taking(|asked, body: wire::Named| async move {
                asked.service.register_runner(known(&asked)?, body).await
            }),
        Route::get("/v1/runners", Who::Owner, "Lists the account's runners.")
            .lists()
            .refused_as(EventType::RUN_REFUSED)
            .by(|asked| async move {
                let (after, limit) = (asked.after()?, asked.listing.limit);
                asked.service.runners(known(&asked)?, after, limit).await
            }),
        Route::post(
            "/v1/tokens",
            Who::Owner,
            "Makes a token. A device's takes the place of those that it had.",
        )
        .makes()
        .taking(|asked, body: wire::MakeToken| async move {
            asked.service.make_token(known(&asked)?, body).await
        }),
        Route::get(
            "/v1/tokens",
            Who::Owner,
            "Lists the account's tokens, without what makes them ones.",
        )
        .lists()
        .by(|asked| async move {
            let (after, limit) = (asked.after()?, asked.listing.limit);
            asked.service.tokens(known(&asked)?, after, limit).await
        }),
        Route::delete("/v1/tokens/{token}", Who::Owner, "Takes a token back.").by(
            |asked| async move {
                let token = asked.parameter("token")?;
                asked.service.revoke_token(known(&asked)?, token).await
            },
        ),
    ]
}

fn runs() -> Vec<Route> {
    let refused = EventType::RUN_REFUSED;
    vec![
        Route::post(
            "/v1/runs",
            Who::Device,
            "Registers a run that is about to begin, and gives the nonce that its log opens with.",
        )
        .makes()
        .refused_as(refused)
        .taking(|asked, body: wire::RegisterRun| async move {
            asked.service.register_run(known(&asked)?, body).await
        }),
        Route::get("/v1/runs", Who::Owner, "Lists the account's runs.")
            .lists()
            .refused_as(refused)
            .by(|asked| async move {
                let (after, limit) = (asked.after()?, asked.listing.limit);
                asked.service.runs(known(&asked)?, after, limit).await
            }),
        Route::get(
            "/v1/runs/{run}",
            Who::OwnerOrDevice,
            "Shows a run and what the service made of it.",
        )
        .refused_as(refused)
        .by(|asked| async move {
            let run = asked.parameter("run")?;
            asked.service.run(known(&asked)?, run).await
        }),
        Route::post(
            "/v1/runs/{run}/checkpoints",
            Who::Device,
            "Takes the signed head of a run's log while the run goes on, and stamps it.",
        )
        .makes()
        .refused_as(refused)
        .taking(|asked, body: wire::SendCheckpoint| async move {
            let (caller, run) = (known(&asked)?, asked.parameter("run")?);
            asked.service.checkpoint(caller, run, body).await
        }),
        Route::put(
            "/v1/runs/{run}/bundle",
            Who::Device,
            "Takes a run's log, packed.",
        )
        .refused_as(refused)
        .streaming(
            "A `run-bundle` statement as JSON on one line, then the bundle's bytes.",
            |asked, body| async move {
                let (caller, run) = (known(&asked)?, asked.parameter("run")?);
                asked.service.receive_bundle(caller, run, body).await
            },
        ),
        Route::post(
            "/v1/runs/{run}/attestations",
            Who::Device,
            "Takes a device's signed word on a run, verifies and judges the bundle, and grades the run.",
        )
        .makes()
        .takes_long()
        .refused_as(EventType::ATTESTATION_REFUSED)
        .taking(|asked, body: wire::Attest| async move {
            let (caller, run) = (known(&asked)?, asked.parameter("run")?);
            asked.service.attest(caller, run, body).await
        }),
    ]
}

fn submissions() -> Vec<Route> {
    let refused = EventType::SUBMISSION_REFUSED;
    vec![
        Route::post("/v1/submissions", Who::Owner, "Takes a piece of work.")
            .makes()
            .refused_as(refused)
            .taking(|asked, body: wire::HandIn| async move {
                asked.service.hand_in(known(&asked)?, body).await
            }),
        Route::get(
            "/v1/submissions",
            Who::Owner,
            "Lists the account's submissions.",
        )
        .lists()
        .refused_as(refused)
        .by(|asked| async move {
            let (after, limit) = (asked.after()?, asked.listing.limit);
            asked
                .service
                .submissions(known(&asked)?, after, limit)
                .await
        }),
        Route::get(
            "/v1/submissions/{submission}",
            Who::Owner,
            "Shows a submission and what it earned.",
        )
        .refused_as(refused)
        .by(|asked| async move {
            let submission = asked.parameter("submission")?;
            asked.service.submission(known(&asked)?, submission).await
        }),
        Route::post(
            "/v1/submissions/{submission}/runs",
            Who::Owner,
            "Puts one more run behind a submission.",
        )
        .refused_as(refused)
        .taking(|asked, body: wire::LinkRun| async move {
            let (caller, submission) = (known(&asked)?, asked.parameter("submission")?);
            asked.service.link_run(caller, submission, body).await
        }),
        Route::get(
            "/v1/battles/{battle}/standings",
            Who::Owner,
            "Shows where everybody stands in a battle that the account takes part in.",
        )
        .refused_as(refused)
        .by(|asked| async move {
            let battle = asked.parameter("battle")?;
            asked.service.standings(known(&asked)?, battle).await
        }),
    ]
}

fn platform() -> Vec<Route> {
    vec![
        Route::post("/v1/platform/accounts", Who::Platform, "Opens an account.")
            .makes()
            .taking(|asked, body: wire::OpenAccount| async move {
                asked.service.open_account(body).await
            }),
        Route::post(
            "/v1/platform/accounts/{account}/tokens",
            Who::Platform,
            "Makes another owner's token, for an owner who lost theirs.",
        )
        .makes()
        .by(|asked| async move {
            let account = asked.parameter("account")?;
            asked.service.reissue(account).await
        }),
        Route::post(
            "/v1/platform/devices/{device}/block",
            Who::Platform,
            "Blocks a device, for good.",
        )
        .refused_as(EventType::DEVICE_REFUSED)
        .taking(|asked, body: wire::Because| async move {
            let device = asked.parameter("device")?;
            asked.service.block(device, body).await
        }),
        Route::post(
            "/v1/platform/devices/{device}/pause",
            Who::Platform,
            "Stops one device's signing, or lets it go on.",
        )
        .refused_as(EventType::DEVICE_REFUSED)
        .taking(|asked, body: wire::SetPause| async move {
            let device = asked.parameter("device")?;
            asked.service.pause(device, body).await
        }),
        Route::post(
            "/v1/platform/kill-switch",
            Who::Platform,
            "Stops all signing, or lets it go on.",
        )
        .taking(|asked, body: wire::SetKillSwitch| async move {
            asked.service.set_kill_switch(body).await
        }),
        Route::get(
            "/v1/platform/kill-switch",
            Who::Platform,
            "Says how the kill switch stands.",
        )
        .by(|asked| async move { asked.service.kill_switch().await }),
        Route::post("/v1/platform/battles", Who::Platform, "Holds a contest.")
            .makes()
            .refused_as(EventType::SUBMISSION_REFUSED)
            .taking(|asked, body: wire::HoldBattle| async move {
                asked.service.hold_battle(body).await
            }),
    ]
}
