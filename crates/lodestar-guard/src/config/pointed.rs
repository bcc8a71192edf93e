//! Where a configuration in JSON is wrong, shown as the TOML reader shows it.

/// What is wrong, with the line that it stands on.
pub(super) fn json(text: &str, problem: &serde_json::Error) -> String {
    let message = problem.to_string();
    let place = format!(" at line {} column {}", problem.line(), problem.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    let (line, column) = place_of(text, problem);
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

/// The line and column of what is wrong. Of a value that is not what it has to be, the reader says where it
/// stood when it noticed, which is the next thing behind it: the value ends before that.
fn place_of(text: &str, problem: &serde_json::Error) -> (usize, usize) {
    let (line, column) = (problem.line(), problem.column());
    if !problem.is_data() {
        return (line, column);
    }
    let lines: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let read = text.get(..lines + column.saturating_sub(1)).unwrap_or(text);
    let value = read.trim_end();
    if value.is_empty() {
        return (line, column);
    }
    let start = value.rfind('\n').map_or(0, |at| at + 1);
    (value.matches('\n').count() + 1, value.len() - start)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn an_error_in_json_names_file_line_and_column_and_shows_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lodestar.json");
        let text = "{\n  \"project_id\": \"p\",\n  \"actor_id\": \"a\",\n  \"auto_approve_ceiling\": 4\n}\n";
        std::fs::write(&file, text).unwrap();
        let said = Config::read(&file).unwrap_err().to_string();
        assert!(
            said.contains("lodestar.json: JSON parse error at line 4"),
            "{said}"
        );
        assert!(said.contains("4 |   \"auto_approve_ceiling\": 4"), "{said}");
        assert!(said.contains("a ceiling is 0 to 3, not 4"), "{said}");
        std::fs::write(&file, "{").unwrap();
        assert!(
            Config::read(&file)
                .unwrap_err()
                .to_string()
                .contains("line 1")
        );
    }
}
