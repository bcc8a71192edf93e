//! The files of a patch in Codex's form, which names them in its text.

/// What a patch says before the name of a file.
const NAMES: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Lines of a patch that name nothing.
const FRAME: [&str; 3] = ["*** Begin Patch", "*** End Patch", "*** End of File"];

/// What a text is, as a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Patch {
    /// None.
    No,
    /// One that touches these files.
    Of(Vec<String>),
    /// One of which nobody can tell what it touches: a newer client may do more with a patch than is known here.
    Unclear,
}

/// Reads a text that may be a patch.
pub(super) fn read(text: &str) -> Patch {
    let lines = || text.lines().filter_map(directive);
    let is_known = |line: &str| file(line).is_some() || FRAME.contains(&line);
    if !lines().any(|(line, _)| is_known(line)) {
        return Patch::No;
    }
    let mut files = Vec::new();
    for (line, is_sure) in lines() {
        match file(line) {
            Some("") => return Patch::Unclear,
            Some(file) => files.push(file.to_owned()),
            None if is_known(line) => {}
            // A line that stays as it is begins with a space, and may be a rule or a heading of its own.
            None if is_sure || line.contains(": ") => return Patch::Unclear,
            None => {}
        }
    }
    match files.is_empty() {
        true => Patch::Unclear,
        false => Patch::Of(files),
    }
}

/// A line that may say what is done, without the space that clients overlook around it; and whether it has none.
fn directive(line: &str) -> Option<(&str, bool)> {
    let trimmed = line.trim();
    let is_one = trimmed.starts_with("***");
    is_one.then(|| (trimmed, line.starts_with("***")))
}

fn file(line: &str) -> Option<&str> {
    // What is trimmed away behind a name leaves an empty one.
    let mut names = NAMES.iter();
    let rest = names.find_map(|name| line.strip_prefix(name.trim_end()))?;
    Some(rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_patch_is_named() {
        let text = "*** Begin Patch\n*** Add File: a.txt\n+hello\n+***\n*** Update File: src/b.rs\n\
             *** Move to: .claude/settings.json\n@@\n-x\n+y\n ***\n*** End of File\n\
             \t*** Delete File: c d.txt \n*** End Patch\n";
        let files = ["a.txt", "src/b.rs", ".claude/settings.json", "c d.txt"];
        assert_eq!(read(text), Patch::Of(files.map(str::to_owned).to_vec()));
    }

    #[test]
    fn of_a_patch_with_lines_that_nobody_knows_nobody_can_tell_what_it_touches() {
        for text in [
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch\n*** Add File: a\n*** Link File: b\n*** End Patch",
            "*** Begin Patch\n*** Add File: a\n  *** Link File: b\n*** End Patch",
            "*** Begin Patch\n*** Add File: a\n***\n*** End Patch",
            "*** Begin Patch\n*** Add File: \n*** End Patch",
            "*** Add File: a\n*** Anything",
        ] {
            assert_eq!(read(text), Patch::Unclear, "{text}");
        }
    }

    #[test]
    fn a_text_with_rules_or_headings_is_no_patch() {
        for text in [
            "",
            "--- a\n+++ b\n",
            "# Notes\n\n***\n\n*** so it goes ***\n",
        ] {
            assert_eq!(read(text), Patch::No, "{text}");
        }
    }
}
