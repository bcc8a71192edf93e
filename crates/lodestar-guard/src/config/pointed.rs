//! Where a configuration in JSON is wrong, shown as the TOML reader shows it.

/// What is wrong, with the line that it stands on.
pub(super) fn json(text: &str, problem: &serde_json::Error) -> String {
    let (line, column) = (problem.line(), problem.column());
    let message = problem.to_string();
    let place = format!(" at line {line} column {column}");
    let message = message.strip_suffix(&place).unwrap_or(&message);
    let Some(shown) = line.checked_sub(1).and_then(|at| text.lines().nth(at)) else {
        return message.to_owned();
    };
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    // The reader counts bytes, and stands behind what it has read.
    let before = shown.get(..column.saturating_sub(1)).unwrap_or(shown);
    let under = " ".repeat(before.chars().count());
    format!(
        "JSON parse error at line {line}, column {column}\n{margin} |\n{number} | {shown}\n{margin} | {under}^\n{message}\n"
    )
}
