//! What servers ask of the agent, as something that the kernel can call: an action of the server's, whose
//! answer is content.

use std::sync::{Arc, Weak};

use lodestar_core::chain::ContentBlock;
use lodestar_core::contract::ArgumentRole;
use lodestar_core::name::ToolName;
use lodestar_core::scope::Scope;
use lodestar_kernel::tool::{Call, Calling, Definition, Effect, Output, Tool, ToolError};
use serde_json::value::RawValue;

use crate::answer::{self, Contents};
use crate::beside::Beside;
use crate::conversation::Conversation;
use crate::peer::Answered;
use crate::server::Server;
use crate::tool::of_method;

/// Something that a server may ask the agent for.
#[derive(Debug)]
pub(crate) struct Favour {
    /// Its name behind the server's.
    pub(crate) name: &'static str,
    /// The method.
    pub(crate) method: &'static str,
    /// What an agent has to be able to do for it.
    pub(crate) capability: &'static str,
    arguments: &'static [(&'static str, ArgumentRole)],
}

/// All of them. What an agent is told may lead it anywhere, so it is what is said; an address is a place.
pub(crate) const FAVOURS: [Favour; 2] = [
    Favour {
        name: "sampling.create",
        method: "sampling/createMessage",
        capability: "sampling",
        arguments: &[
            ("messages", ArgumentRole::Payload),
            ("systemPrompt", ArgumentRole::Payload),
            ("maxTokens", ArgumentRole::Other),
            ("modelPreferences", ArgumentRole::Other),
            ("tools", ArgumentRole::Payload),
        ],
    },
    Favour {
        name: "elicitation.create",
        method: "elicitation/create",
        capability: "elicitation",
        arguments: &[
            ("message", ArgumentRole::Payload),
            ("requestedSchema", ArgumentRole::Payload),
            ("url", ArgumentRole::Destination),
            ("mode", ArgumentRole::Other),
        ],
    },
];

impl Favour {
    /// What a method asks for.
    pub(crate) fn of(method: &str) -> Option<&'static Self> {
        FAVOURS.iter().find(|favour| favour.method == method)
    }
}

/// One of them, for one server.
#[derive(Debug)]
pub(crate) struct AgentTool {
    definition: Definition,
    favour: &'static Favour,
    /// It belongs to the session that the conversation owns.
    conversation: Weak<Conversation>,
}

impl AgentTool {
    /// What this server may ask for.
    pub(crate) fn new(
        name: ToolName,
        favour: &'static Favour,
        server: &Arc<Server>,
        conversation: Weak<Conversation>,
        scope: &Scope,
    ) -> Self {
        Self {
            definition: of_method(name, server, favour.arguments, scope),
            favour,
            conversation,
        }
    }

    async fn run(&self, call: Call<'_>) -> Result<Output, ToolError> {
        let not_there = || ToolError::failed(Effect::None, "the agent is not there".to_owned());
        let conversation = self.conversation.upgrade().ok_or_else(not_there)?;
        let params = serde_json::to_string(call.arguments())
            .and_then(RawValue::from_string)
            .map_err(|problem| ToolError::invalid(problem.to_string()))?;
        let beside = call.beside::<Beside>().cloned().unwrap_or_default();
        let (method, progress) = (self.favour.method, call.progress());
        let asking = conversation.ask_agent(method, Some(&params), progress, &beside);
        let mut asking = asking.await.ok_or_else(not_there)?;
        let answered = tokio::select! {
            answered = asking.answer() => answered,
            () = call.stopped() => {
                asking.cancel("the server does not wait any more").await;
                return Err(ToolError::stopped(Effect::Unknown));
            }
        };
        match answered {
            Some(Answered::Result(result)) => {
                recorded(&result).map_err(|problem| ToolError::failed(Effect::Unknown, problem))
            }
            Some(Answered::Error(error)) => Ok(answer::recorded_error(&error)),
            None => Err(ToolError::failed(
                Effect::Unknown,
                "the agent left before it answered".to_owned(),
            )),
        }
    }
}

impl Tool for AgentTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(self.run(call))
    }
}

/// The answer's content is one block, several, or what was filled into a form.
fn recorded(result: &RawValue) -> Result<Output, String> {
    let mut output = answer::recorded(result, Contents::Blocks)?;
    match output.rest.remove("content") {
        Some(block) if block.get("type").is_some() => {
            output.content.push(ContentBlock::from_wire(block));
        }
        Some(value) => output.content.push(ContentBlock::Structured { value }),
        None => {}
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str) -> Vec<ContentBlock> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        recorded(&raw).unwrap().content
    }

    #[test]
    fn what_an_agent_answers_is_content() {
        let one =
            contents(r#"{"role":"assistant","content":{"type":"text","text":"4"},"model":"m"}"#);
        assert!(matches!(&one[..], [ContentBlock::Text { text, .. }] if text == "4"));
        let two =
            contents(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#);
        assert_eq!(two.len(), 2);
        let form = contents(r#"{"action":"accept","content":{"name":"Ada"}}"#);
        assert!(matches!(&form[..], [ContentBlock::Structured { .. }]));
        assert!(contents(r#"{"action":"decline"}"#).is_empty());
    }
}
