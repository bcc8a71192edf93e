//! A first pack, to change: it passes `pack check`, and its scenario passes with its contrast.

use super::about::About;
use super::files::{ABOUT, SCENARIOS};

/// Its files, for a pack of this name by this author: path and text.
pub fn files(name: &str, author: &str) -> Vec<(String, String)> {
    let fill = |text: &str| text.replace("PACK", name).replace("AUTHOR", author);
    vec![
        (ABOUT.to_owned(), fill(include_str!("template/pack.toml"))),
        (
            "README.md".to_owned(),
            fill(include_str!("template/README.md")),
        ),
        (
            format!("{SCENARIOS}/note-cannot-send.toml"),
            include_str!("template/note-cannot-send.toml").to_owned(),
        ),
    ]
}

/// What is wrong with a name or an author, before anything is written.
pub fn check(name: &str, author: &str) -> Result<(), String> {
    let about = files(name, author).swap_remove(0).1;
    match About::parse(&about) {
        Ok(_) => Ok(()),
        Err(problems) => {
            let problems = problems.into_iter().map(|one| one.problem);
            Err(problems.collect::<Vec<_>>().join("; "))
        }
    }
}
