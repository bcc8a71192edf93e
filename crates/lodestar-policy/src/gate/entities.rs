//! The entities that Cedar is asked with.

use std::borrow::Cow;
use std::collections::HashMap;

use cedar_policy::{Entities, Entity, EntityUid, RestrictedExpression};

use crate::facts::Agent;
use crate::slice::Resource;

/// The tool's entities and the agent; made once for the agent who asks first.
pub(super) fn entities_for<'a>(
    resource: &'a Resource,
    principal: &EntityUid,
    agent: &Agent,
) -> Result<Cow<'a, Entities>, String> {
    match resource.with_agent.get() {
        Some((first, entities)) if first == agent => return Ok(Cow::Borrowed(entities)),
        Some(_) => return with_agent(&resource.entities, principal, agent).map(Cow::Owned),
        None => {}
    }
    let made = with_agent(&resource.entities, principal, agent)?;
    let (first, entities) = resource
        .with_agent
        .get_or_init(|| (agent.clone(), made.clone()));
    Ok(match first == agent {
        true => Cow::Borrowed(entities),
        false => Cow::Owned(made),
    })
}

fn with_agent(
    entities: &Entities,
    principal: &EntityUid,
    agent: &Agent,
) -> Result<Entities, String> {
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let attributes = HashMap::from([
        ("device_trust".to_owned(), text(&agent.device_trust)),
        ("execution".to_owned(), text(&agent.execution)),
    ]);
    let entity = Entity::new(principal.clone(), attributes, Default::default())
        .map_err(|error| error.to_string())?;
    let entities = entities.clone().add_entities([entity], None);
    entities.map_err(|error| error.to_string())
}
