//! The tools of a session, as configured.

use std::sync::Arc;

use lodestar_core::scope::Scope;
use lodestar_kernel::registry::Registry;
use lodestar_kernel::tool::Tool;

use crate::config::Config;
use crate::session::OpenError;

/// The tools in the box that the configuration asks for, and one's own.
pub(crate) fn registry(
    config: &Config,
    scope: &Scope,
    own: &[Arc<dyn Tool>],
) -> Result<Registry, OpenError> {
    let mut registry = Registry::default();
    for tool in own {
        let grade = config.tool_defaults.get(tool.definition().name.as_str());
        registry.add(Arc::clone(tool), grade, scope)?;
    }
    registry.check_grades(config.tool_defaults.keys())?;
    Ok(registry)
}
