//! A grade in a configuration's text, of which the rest stays as it is.

use std::path::Path;

use lodestar_core::name::ToolName;
use lodestar_guard::config::Config;
use lodestar_kernel::grade::Grade;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use crate::failure::Failure;
use crate::{files, inert};

/// Where grades stand.
const GRADES: &str = "tool_defaults";
/// A configuration is written by people.
const MAX_CONFIG: u64 = 4 << 20;

/// What a grade says, in the order it is written.
fn settings(grade: &Grade) -> Vec<(&'static str, Value)> {
    let word = |name, value: Option<String>| value.map(|value| (name, Value::from(value)));
    let mut settings: Vec<(&'static str, Value)> = [
        word(
            "required_trust_level",
            grade.required_trust_level.map(|one| one.to_string()),
        ),
        word(
            "blast_radius",
            grade.blast_radius.map(|one| one.to_string()),
        ),
        word(
            "reversibility",
            grade.reversibility.map(|one| one.to_string()),
        ),
        word(
            "data_sensitivity",
            grade.data_sensitivity.map(|one| one.to_string()),
        ),
        word("sandbox", grade.sandbox.map(|one| one.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !grade.groups.is_empty() {
        let groups: Array = grade.groups.iter().map(String::as_str).collect();
        settings.push(("groups", groups.into()));
    }
    settings
}

/// The table, by itself.
pub(super) fn table(name: &ToolName, grade: &Grade) -> String {
    let mut document = DocumentMut::new();
    // A document without a table for grades takes any grade.
    let _ = set(&mut document, name, grade);
    document.to_string()
}

/// Sets a grade in a configuration; what its table says beside it stays.
fn set(document: &mut DocumentMut, name: &ToolName, grade: &Grade) -> Result<(), &'static str> {
    let grades = document.entry(GRADES).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let inline = grades.is_inline_table();
    let grades = grades
        .as_table_like_mut()
        .ok_or("`tool_defaults` is no table")?;
    let own = grades.entry(name.as_str()).or_insert_with(|| match inline {
        true => Item::Value(Value::InlineTable(toml_edit::InlineTable::new())),
        false => Item::Table(Table::new()),
    });
    let own: &mut dyn TableLike = own
        .as_table_like_mut()
        .ok_or("the tool's grade is no table")?;
    for (key, value) in settings(grade) {
        match own.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                let around = old.decor().clone();
                *old = value;
                *old.decor_mut() = around;
            }
            None => {
                own.insert(key, Item::Value(value));
            }
        }
    }
    Ok(())
}

/// Writes a grade into a configuration, if it is one before and after.
pub(super) fn write(file: &Path, name: &ToolName, grade: &Grade) -> Result<(), Failure> {
    let shown = inert::path(file);
    if file.extension().is_some_and(|ending| ending == "json") {
        return Err(Failure::usage(format!(
            "`{shown}` is JSON, and only TOML can be edited in place"
        ))
        .help("put what is printed without --write into it by hand"));
    }
    let bytes = files::read(file, MAX_CONFIG)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("`{shown}` is not UTF-8 text")))?;
    let edited = edited(&text, name, grade)
        .map_err(|problem| Failure::usage(format!("`{shown}` cannot be edited: {problem}")))?;
    let root = file.parent().unwrap_or(Path::new("."));
    Config::parse(&edited, root)?;
    let metadata = file.metadata().map_err(Failure::io(file))?;
    files::replace(file, |to| Ok(to.write_all(edited.as_bytes())?))?;
    std::fs::set_permissions(file, metadata.permissions()).map_err(Failure::io(file))
}

fn edited(text: &str, name: &ToolName, grade: &Grade) -> Result<String, String> {
    // The editor writes plain line ends; those of a file that has others throughout are put back.
    let plain = text.replace("\r\n", "\n");
    let ends = match plain.replace('\n', "\r\n") == text {
        true if plain != text => "\r\n",
        _ => "\n",
    };
    let mut document: DocumentMut = plain
        .parse()
        .map_err(|e: toml_edit::TomlError| e.to_string())?;
    if document.to_string().replace('\n', ends) != text {
        return Err("its text would not stay as it is; put the table into it by hand".to_owned());
    }
    set(&mut document, name, grade).map_err(str::to_owned)?;
    Ok(document.to_string().replace('\n', ends))
}

#[cfg(test)]
mod tests {
    use lodestar_core::ladder::Rung;

    use super::*;

    fn name() -> ToolName {
        ToolName::new("fs.write").expect("a name")
    }

    fn grade() -> Grade {
        Grade {
            required_trust_level: Some(Rung::L4),
            groups: ["risky".to_owned()].into(),
            ..Grade::default()
        }
    }

    #[test]
    fn a_new_table_goes_to_the_end_and_nothing_else_moves() {
        let text = "# ours\nproject_id   = \"web\"\n\n[tools.\"fs.write\"] # root\nroot = '.'\n";
        let after = edited(text, &name(), &grade()).expect("edited");
        assert_eq!(
            after,
            format!(
                "{text}\n[tool_defaults.\"fs.write\"]\nrequired_trust_level = \"L4\"\ngroups = [\"risky\"]\n"
            )
        );
    }

    #[test]
    fn line_ends_stay_and_a_file_with_both_is_left_alone() {
        let text = "a = 1\r\n[limits]\r\n";
        let after = edited(text, &name(), &grade()).expect("edited");
        assert!(after.starts_with(text), "{after:?}");
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
        assert!(edited("a = 1\r\n[limits]\n", &name(), &grade()).is_err());
    }

    #[test]
    fn what_a_grade_says_beside_it_stays() {
        let text = "[tool_defaults.\"fs.write\"]\n# why\nrequired_trust_level = \"L3\" # looked at\npreconditions = [{ check = \"git_head\" }]\n\n[limits]\n";
        let after = edited(text, &name(), &grade()).expect("edited");
        assert_eq!(
            after,
            "[tool_defaults.\"fs.write\"]\n# why\nrequired_trust_level = \"L4\" # looked at\npreconditions = [{ check = \"git_head\" }]\ngroups = [\"risky\"]\n\n[limits]\n"
        );
    }

    #[test]
    fn inline_grades_stay_inline() {
        let text = "tool_defaults = { \"fs.read\" = { required_trust_level = \"L1\" } }\n";
        let after = edited(text, &name(), &grade()).expect("edited");
        assert!(
            after.starts_with("tool_defaults = { \"fs.read\" = { required_trust_level = \"L1\" }"),
            "{after}"
        );
        assert!(after.parse::<DocumentMut>().is_ok(), "{after}");
        assert_eq!(after.lines().count(), 1, "{after}");
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in [
            "tool_defaults = 1\n",
            "[tool_defaults]\n\"fs.write\" = 1\n",
            "x = \n",
        ] {
            assert!(edited(text, &name(), &grade()).is_err(), "{text}");
        }
    }
}
