//! `git status` as people read it, in English.

use super::status::{Status, unquote};

/// Which list of paths a line stands in.
#[derive(Clone, Copy)]
enum Section {
    None,
    Staged,
    Unstaged,
    Untracked,
    Unmerged,
}

/// Reads the human form; `None` if no line says which branch it is.
pub(super) fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Status> {
    let mut status = Status::default();
    let mut section = Section::None;
    for line in lines {
        if let Some(head) = line.strip_prefix("On branch ") {
            status.head = Some(head.to_owned());
        } else if let Some(head) = line
            .strip_prefix("HEAD detached at ")
            .or_else(|| line.strip_prefix("HEAD detached from "))
        {
            status.detached = true;
            status.head = Some(head.to_owned());
        } else if let Some(news) = line.strip_prefix("Your branch ") {
            upstream(&mut status, news);
        } else if let Some(each) = line.strip_prefix("and have ") {
            status.distance = diverged(each).or(status.distance);
        } else if let Some(next) = heading(line) {
            section = next;
        } else if line.starts_with(['\t', ' ']) {
            path(&mut status, section, line);
        }
    }
    status.head.is_some().then_some(status)
}

fn heading(line: &str) -> Option<Section> {
    Some(match line.strip_suffix(':')? {
        "Changes to be committed" => Section::Staged,
        "Changes not staged for commit" => Section::Unstaged,
        "Untracked files" => Section::Untracked,
        "Unmerged paths" => Section::Unmerged,
        _ => Section::None,
    })
}

/// What follows "Your branch": its upstream in quotes, and a distance.
fn upstream(status: &mut Status, news: &str) {
    if let Some((_, rest)) = news.split_once('\'') {
        status.upstream = rest.split_once('\'').map(|(name, _)| name.to_owned());
    }
    let by = || {
        let (_, rest) = news.rsplit_once(" by ")?;
        rest.split(' ').next()?.parse().ok()
    };
    status.distance = if news.starts_with("is up to date") {
        Some((0, 0))
    } else if news.starts_with("is ahead of") {
        by().map(|count| (count, 0))
    } else if news.starts_with("is behind") {
        by().map(|count| (0, count))
    } else {
        None
    };
}

/// What follows "and have": two numbers of commits.
fn diverged(each: &str) -> Option<(u64, u64)> {
    let (ahead, rest) = each.split_once(" and ")?;
    let behind = rest.split(' ').next()?;
    Some((ahead.parse().ok()?, behind.parse().ok()?))
}

fn path(status: &mut Status, section: Section, line: &str) {
    let line = line.trim_start();
    if line.starts_with('(') && line.ends_with(')') {
        return; // A hint on what to type.
    }
    let changed = || {
        let (change, path) = line.split_once(':')?;
        let known = [
            "modified",
            "new file",
            "deleted",
            "renamed",
            "copied",
            "typechange",
            "both modified",
            "both added",
            "both deleted",
            "added by us",
            "added by them",
            "deleted by us",
            "deleted by them",
        ];
        known.contains(&change).then_some(())?;
        let path = path.trim_start();
        let new = path.rsplit_once(" -> ").map_or(path, |(_, new)| new);
        Some(unquote(new))
    };
    match section {
        Section::None => {}
        Section::Untracked => status.untracked.add(&unquote(line)),
        Section::Staged => changed().into_iter().for_each(|p| status.staged.add(&p)),
        Section::Unstaged => changed().into_iter().for_each(|p| status.unstaged.add(&p)),
        Section::Unmerged => changed().into_iter().for_each(|p| status.unmerged.add(&p)),
    }
}
