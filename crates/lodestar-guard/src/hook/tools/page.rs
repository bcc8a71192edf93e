//! The page of the built-in tools, made of what is in force.

use std::fmt::Write as _;

use super::Sort;

/// A reference page: every governed tool of a client, what it does and how it is graded where nobody says otherwise.
fn reference_page() -> String {
    let mut page = String::from(
        "\
# Built-in tools of clients

<!-- Made of the code by `LODESTAR_BLESS=1 cargo test -p lodestar-guard page`. -->

What a client does with its own tools is, behind [hooks](../guides/hooks.md), a use of one of these. Put the client's name before it:
`claude-code.read`, `codex.shell.local`, `cursor.fetch`, `gemini.write.outside`. That is its name in policies, in the log, and in
`[tool_defaults.\"claude-code.fetch\"]`, which grades it anew. Up to `auto_approve_ceiling` a use runs unasked; L4 waits for a person,
and L5 runs for nobody.

| tool | is used where the client | rung | blast radius | reversibility | data |
|---|---|---|---|---|---|
",
    );
    for sort in Sort::ALL {
        let (word, does) = (sort.word(), sort.does());
        let row = match sort.grade() {
            None => format!("| `{word}` | {does} | ungraded: L4 | — | — | — |"),
            Some(grade) => {
                let cell = |value: Option<String>| value.unwrap_or_else(|| "—".to_owned());
                format!(
                    "| `{word}` | {does} | {} | {} | {} | {} |",
                    cell(grade.required_trust_level.map(|one| one.to_string())),
                    cell(grade.blast_radius.map(|one| one.to_string())),
                    cell(grade.reversibility.map(|one| one.to_string())),
                    cell(grade.data_sensitivity.map(|one| one.to_string())),
                )
            }
        };
        let _ = writeln!(page, "{row}");
    }
    page.push_str(
        "
Which of the four `shell` tools a command line is, its strictest part decides; `reading` among the arguments says which part that was, and
why. `shell.prohibited` stays at L5, whatever is configured. Nothing contains these tools: the client runs them itself.
",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_as_the_code_says() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/hook-tools.md"
        );
        let page = reference_page();
        if std::env::var_os("LODESTAR_BLESS").is_some() {
            std::fs::write(file, &page).expect("written");
        }
        assert_eq!(
            std::fs::read_to_string(file).unwrap_or_default(),
            page,
            "run the tests with LODESTAR_BLESS=1, then look at the difference"
        );
    }
}
