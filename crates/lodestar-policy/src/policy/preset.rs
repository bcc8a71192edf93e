//! Presets: what `auto_approve_ceiling` means, as Cedar text that can be printed and read.

/// The rungs that policy decides on: above them the ladder does.
const HIGHEST: u8 = 3;

/// The text of the preset with this ceiling; none above L3.
pub(super) fn text(ceiling: u8) -> Option<String> {
    if ceiling > HIGHEST {
        return None;
    }
    let mut text = format!(
        "// Lodestar's preset for `auto_approve_ceiling = {ceiling}`.

// What stands on L{ceiling} or below runs.
@id(\"preset-run\")
permit (principal, action in Action::\"run\", resource)
when {{ context.level <= {ceiling} }};
"
    );
    if ceiling < HIGHEST {
        text.push_str(&format!(
            "
// What stands above it, up to L3, runs once a human has agreed.
@id(\"preset-ask\")
permit (principal, action in Action::\"ask\", resource)
when {{ context.level > {ceiling} && context.level <= {HIGHEST} }};
"
        ));
    }
    text.push_str(
        "\n// No rule is needed for L4, which waits for a human, and L5, which does not run.\n",
    );
    Some(text)
}
