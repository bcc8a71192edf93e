//! Refusals, as they are recorded: by code and by ids, and by nothing that somebody wrote.

use lodestar_core::event::EventType;
use lodestar_core::id::{DeviceId, RunId, SubmissionId};
use serde_json::{Value, json};

use super::known::Caller;
use super::{Service, ladder};
use crate::code::{Code, Refusal};

/// A refusal to be recorded.
#[derive(Debug)]
pub(crate) struct Refused {
    /// As what.
    pub(crate) kind: EventType,
    /// The route, not the path.
    pub(crate) route: String,
    pub(crate) code: Code,
    pub(crate) field: Option<&'static str>,
    /// The device that it counts against.
    pub(crate) strike: Option<DeviceId>,
    /// Whether it came over the platform's socket.
    pub(crate) local: bool,
    pub(crate) caller: Caller,
    /// What the path names.
    pub(crate) named: Vec<(String, String)>,
    /// How often, since it was last recorded.
    pub(crate) times: u64,
}

impl Refused {
    fn payload(&self) -> Value {
        let mut payload = json!({"code": self.code, "route": self.route});
        let Some(members) = payload.as_object_mut() else {
            return payload;
        };
        if let Some(field) = self.field {
            members.insert("field".to_owned(), field.into());
        }
        if self.times > 1 {
            members.insert("times".to_owned(), self.times.into());
        }
        match &self.caller {
            Caller::Nobody => {}
            Caller::Platform => {
                members.insert("actor".to_owned(), "platform".into());
            }
            Caller::Known(identity) => {
                members.insert("account".to_owned(), json!(identity.account));
                members.insert("token".to_owned(), json!(identity.token));
                members.insert("actor".to_owned(), json!(identity.kind));
            }
        }
        // What the path names is written only where it is an id: anything else is somebody's text.
        for (name, text) in &self.named {
            let is_id = match name.as_str() {
                "device" => text.parse::<DeviceId>().is_ok(),
                "run" => text.parse::<RunId>().is_ok(),
                "submission" => text.parse::<SubmissionId>().is_ok(),
                _ => false,
            };
            if is_id {
                members.insert(name.clone(), text.as_str().into());
            }
        }
        if self.local {
            members.insert("socket".to_owned(), true.into());
        }
        payload
    }
}

impl Service {
    /// Records a refusal, and counts it against the device whose signature it was for.
    pub(crate) async fn refused(&self, refused: Refused) -> Result<(), Refusal> {
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            desk.record(refused.kind, &refused.payload())?;
            if let Some(device) = refused.strike {
                ladder::strike(desk, device)?;
            }
            Ok(())
        })
        .await
    }
}
