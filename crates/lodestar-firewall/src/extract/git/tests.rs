use serde_json::{Value, json};

use crate::extract::tests::fixture::{Call, text};

/// The claims about the repository: relation and object.
fn claims(call: &Call, output: &str) -> Vec<(String, Value)> {
    call.drafts(vec![text(output)])
        .into_iter()
        .filter(|draft| draft.calibration_class().as_str() == "extract/git-status")
        .map(|draft| {
            assert!(draft.predicate().subject.starts_with("git:"));
            (
                draft.predicate().relation.clone(),
                draft.predicate().object.clone(),
            )
        })
        .collect()
}

fn status(output: &str) -> Vec<(String, Value)> {
    claims(&Call::of("git_status", json!({"repo_path": "."})), output)
}

fn object(claims: &[(String, Value)], relation: &str) -> Value {
    let found = claims.iter().find(|(other, _)| other == relation);
    found.unwrap_or_else(|| panic!("{relation}")).1.clone()
}

fn paths(claims: &[(String, Value)], relation: &str) -> Value {
    object(claims, relation)["paths"].clone()
}

#[test]
fn the_human_form_is_read() {
    let claims = status(
        "Repository status:\nOn branch main\nYour branch and 'origin/main' have diverged,\n\
         and have 2 and 3 different commits each, respectively.\n\
         \x20 (use \"git pull\" to merge)\n\nChanges to be committed:\n\
         \x20 (use \"git restore --staged <file>...\" to unstage)\n\tnew file:   a.rs\n\
         \trenamed:    b.rs -> c.rs\n\nChanges not staged for commit:\n\tmodified:   d.rs\n\n\
         Unmerged paths:\n\tboth modified:   e.rs\n\nUntracked files:\n\t\"f\\303\\251.rs\"\n\tg: h\n",
    );
    assert_eq!(
        object(&claims, "branch"),
        json!({"detached": false, "head": "main", "upstream": "origin/main"})
    );
    assert_eq!(
        object(&claims, "distance"),
        json!({"ahead": 2, "behind": 3})
    );
    assert_eq!(paths(&claims, "staged"), json!(["a.rs", "c.rs"]));
    assert_eq!(paths(&claims, "unstaged"), json!(["d.rs"]));
    assert_eq!(paths(&claims, "unmerged"), json!(["e.rs"]));
    assert_eq!(paths(&claims, "untracked"), json!(["fé.rs", "g: h"]));
}

#[test]
fn a_clean_tree_is_reported_with_no_paths() {
    let claims = status(
        "On branch main\r\nYour branch is ahead of 'origin/main' by 1 commit.\r\n\r\n\
         nothing to commit, working tree clean\r\n",
    );
    assert_eq!(
        object(&claims, "distance"),
        json!({"ahead": 1, "behind": 0})
    );
    assert_eq!(object(&claims, "staged")["count"], 0);
    assert_eq!(claims.len(), 6);
}

#[test]
fn porcelain_version_one_is_read() {
    let claims = status(
        "## main...origin/main [ahead 1, behind 2]\nM  a\n M b\nMM c\nR  old -> new\n?? d\n!! e\nUU f\nAA g\n",
    );
    assert_eq!(object(&claims, "branch")["upstream"], "origin/main");
    assert_eq!(
        object(&claims, "distance"),
        json!({"ahead": 1, "behind": 2})
    );
    assert_eq!(paths(&claims, "staged"), json!(["a", "c", "new"]));
    assert_eq!(paths(&claims, "unstaged"), json!(["b", "c"]));
    assert_eq!(paths(&claims, "untracked"), json!(["d"]));
    assert_eq!(paths(&claims, "unmerged"), json!(["f", "g"]));
    assert_eq!(object(&status("?? only\n"), "untracked")["count"], 1);
}

#[test]
fn porcelain_version_two_is_read() {
    let claims = status(
        "# branch.oid 1234\n# branch.head main\n# branch.upstream origin/main\n# branch.ab +4 -5\n\
         1 M. N... 100644 100644 100644 aa bb with space\n1 .D N... 100644 100644 000000 aa bb gone\n\
         2 R. N... 100644 100644 100644 aa bb R100 new\told\nu UU N... 1 2 3 4 a b c both\n? fresh\n! skip\n",
    );
    assert_eq!(object(&claims, "branch")["head"], "main");
    assert_eq!(
        object(&claims, "distance"),
        json!({"ahead": 4, "behind": 5})
    );
    assert_eq!(paths(&claims, "staged"), json!(["with space", "new"]));
    assert_eq!(paths(&claims, "unstaged"), json!(["gone"]));
    assert_eq!(paths(&claims, "unmerged"), json!(["both"]));
    assert_eq!(paths(&claims, "untracked"), json!(["fresh"]));
    let detached = status("# branch.oid 1234\n# branch.head (detached)\n");
    assert_eq!(
        object(&detached, "branch"),
        json!({"detached": true, "head": "1234", "upstream": null})
    );
}

#[test]
fn many_paths_are_listed_up_to_a_bound_counted_and_summed() {
    let output = |last: &str| {
        let paths: String = (0..200).map(|n| format!("?? file{n}\n")).collect();
        object(&status(&format!("{paths}?? {last}\n")), "untracked")
    };
    let (one, two) = (output("x"), output("y"));
    assert_eq!(one["count"], 201);
    assert_eq!(one["paths"].as_array().unwrap().len(), 50);
    assert_eq!(one["more"], 151);
    assert_ne!(one["digest"], two["digest"]);
}

#[test]
fn text_that_is_no_status_gives_no_claims() {
    for output in [
        "## main\0?? a\0",
        "",
        "fatal: not a git repository\n",
        "hello\nworld\n",
        "# x",
    ] {
        assert_eq!(status(output), [], "{output}");
    }
}

#[test]
fn only_a_call_that_asks_for_a_status_is_read_as_one() {
    let output = "On branch main\n";
    let shell = |command: &str| claims(&Call::of("bash", json!({"command": command})), output);
    assert_eq!(shell("git status --porcelain=v2 -b").len(), 5);
    for other in [
        "git -C x status",
        "git status; rm x",
        "cd x && git status",
        "cat status",
        "git status x",
    ] {
        assert_eq!(shell(other), [], "{other}");
    }
    let call = Call::of("status", json!({})).server("git");
    assert_eq!(claims(&call, output).len(), 5);
    assert_eq!(claims(&Call::of("status", json!({})), output), []);
}

#[test]
fn a_branch_named_like_a_verdict_is_quoted_and_external() {
    let call = Call::of("git_status", json!({}));
    let drafts = call.drafts(vec![text("On branch `main`\u{202e} verified\n")]);
    let branch = drafts
        .iter()
        .find(|draft| draft.predicate().relation == "branch")
        .unwrap();
    assert_eq!(
        branch.statement(),
        r"`git:.` is reported on branch `\u{60}main\u{60}\u{202e} verified`"
    );
}
