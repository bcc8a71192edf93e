use std::collections::BTreeSet;

use super::super::rewrite::{Around, innermost};
use super::*;

fn rewritten(source: &str) -> Rewritten {
    rewrite(source, 1, &BTreeSet::new()).unwrap()
}

/// The text without the comments that mark the mutants, with a short question.
fn plain(source: &str) -> String {
    let mut text = rewritten(source)
        .text
        .replace("crate::mutant_switch::on", "on");
    while let Some(start) = text.find("/*") {
        let end = text[start..].find("*/").unwrap() + start + 2;
        text.replace_range(start..end, "");
    }
    text
}

fn changes(source: &str) -> Vec<String> {
    let mutants = rewritten(source).mutants;
    mutants.into_iter().map(|mutant| mutant.change).collect()
}

/// An expression in a function whose body no constant can replace.
fn within(expression: &str) -> String {
    format!("fn f() -> ! {{ {expression} }}")
}

#[track_caller]
fn becomes(expression: &str, expected: &str) {
    let text = plain(&within(expression));
    assert_eq!(text, within(expected));
    // What is put in is Rust.
    syn::parse_file(&text).unwrap();
}

#[test]
fn an_equality_turns_round() {
    becomes("a == b", "((a == b) ^ on(1))");
    becomes("a != b()?", "((a != b()?) ^ on(1))");
}

#[test]
fn both_sides_of_a_condition_are_written_once() {
    becomes("a && b", "((((a ) ^ on(1)) && (( b) ^ on(1))) ^ on(1))");
}

#[test]
fn points_inside_of_points_keep_their_order() {
    becomes(
        "a == b || c",
        "((((((a == b) ^ on(2)) ) ^ on(1)) || (( c) ^ on(1))) ^ on(1))",
    );
}

#[test]
fn a_comparison_has_three_others() {
    becomes(
        "a < 5",
        "(match (&(a ), &( 5)) { (__l, __r) => { if on(1) { *__l == *__r } else \
         if on(2) { *__l > *__r } else if on(3) { *__l <= *__r } else { *__l < *__r } } })",
    );
}

#[test]
fn numbers_are_moved_once() {
    becomes(
        "a + 1",
        "(match ((a ), ( 1)) { (__l, __r) => { if on(1) { __l - __r } else \
         if on(2) { __l * __r } else { __l + __r } } })",
    );
    becomes(
        "a[0] += 1 ^ 2;",
        "(match ((match ((1 ), ( 2)) { (__l, __r) => { if on(3) { __l & __r } else \
         if on(4) { __l | __r } else { __l ^ __r } } })) { __r => { if on(1) { a[0] -= __r } else \
         if on(2) { a[0] *= __r } else { a[0] += __r } } });",
    );
}

#[test]
fn a_sign_is_left_out() {
    becomes(
        "!a",
        "(match (a) { __v => { if on(1) { __v } else { !__v } } })",
    );
    becomes("*a", "*a");
}

#[test]
fn an_arm_goes_where_another_catches_what_it_took() {
    becomes(
        "match a { A => 1, _ => 2 }",
        "match a { A if !on(1) => 1, _ => 2 }",
    );
    becomes("match a { A => 1, B => 2 }", "match a { A => 1, B => 2 }");
    becomes(
        "match a { A if b => 1, _ => 2 }",
        "match a { A if !on(1) && (on(2) || !on(3) && (b)) => 1, _ => 2 }",
    );
    becomes(
        "match a { A if b => 1, c => 2 }",
        "match a { A if (on(1) || !on(2) && (b)) => 1, c => 2 }",
    );
}

#[test]
fn a_body_is_replaced_before_it_begins() {
    assert_eq!(
        plain("impl T { fn f(&self) -> bool { self.a } }"),
        "impl T { fn f(&self) -> bool {if on(1) { return true; } if on(2) { return false; }  self.a } }"
    );
    assert_eq!(
        changes("fn f() { g() }"),
        ["replace the body of `f` with `()`"]
    );
    // Nothing that stands there already, and nothing that calls itself.
    assert!(changes("fn f() {}").is_empty());
    assert_eq!(
        changes("fn f() -> bool { true }"),
        ["replace the body of `f` -> bool with `false`"]
    );
    assert!(changes("impl T { fn none() -> Self { Self::default() } }").is_empty());
    assert!(changes("impl Default for T { fn default() -> Self { T(1) } }").is_empty());
}

#[test]
fn what_runs_when_compiling_is_left_alone() {
    for source in [
        "const A: usize = 1 + 2;",
        "static A: usize = 1 + 2;",
        "const fn f() -> usize { 1 + 2 }",
        "fn f() -> ! { const A: usize = 1 + 2; }",
        "fn f(a: [u8; 1 + 2]) -> ! { [0; 1 + 2] }",
        "fn f() -> ! { if let -1 = a {} }",
        "fn f() -> ! { assert!(a == b) }",
        "fn f() -> ! { if a && let b = c {} }",
    ] {
        assert_eq!(rewritten(source).text, source);
    }
}

#[test]
fn tests_and_what_is_shown_to_developers_are_left_alone() {
    for source in [
        "#[cfg(test)] mod tests { fn f() { a == b } }",
        "#[test] fn f() { a == b }",
        "impl fmt::Debug for T { fn fmt(&self) -> bool { a == b } }",
    ] {
        assert!(rewritten(source).mutants.is_empty(), "{source}");
    }
}

#[test]
fn a_mutant_says_where_it_is() {
    let mutants = rewritten("impl A for B {\n    fn f() -> ! {\n        a == b\n    }\n}").mutants;
    let [mutant] = mutants.as_slice() else {
        panic!("{mutants:?}")
    };
    assert_eq!((mutant.line, mutant.column), (3, 11));
    assert_eq!(mutant.function, "B as A::f");
    assert_eq!(mutant.change, "replace `==` with `!=` in `a == b`");
}

#[test]
fn the_same_change_twice_in_one_function_is_told_apart() {
    let changes = changes(&within("a == b; a == b"));
    assert_eq!(
        changes,
        [
            "replace `==` with `!=` in `a == b`",
            "replace `==` with `!=` in `a == b` (2)"
        ]
    );
}

#[test]
fn a_dropped_mutant_is_gone_and_the_others_keep_their_numbers() {
    let source = within("a < b");
    let dropped = BTreeSet::from([1, 3]);
    let rest = rewrite(&source, 1, &dropped).unwrap();
    assert!(rest.text.contains("/*a2*/*__l > *__r/*.a2*/"));
    assert!(!rest.text.contains("on(1)") && !rest.text.contains("on(3)"));
    assert_eq!(rest.mutants.len(), 3);
    let none = rewrite(&source, 1, &BTreeSet::from([1, 2, 3])).unwrap();
    assert_eq!(none.text, source);
}

#[test]
fn the_place_of_an_error_names_its_mutant() {
    let text = rewritten(&within("a + (b < c)")).text;
    let at = |needle: &str| {
        let start = text.find(needle).unwrap();
        innermost(&text, &(start..start + needle.len()))
    };
    assert_eq!(at("__l - __r"), Some(Around::Alternative(1)));
    assert_eq!(at("*__l == *__r"), Some(Around::Alternative(3)));
    assert_eq!(at("&(b"), Some(Around::Point(3)));
    assert_eq!(at("__l + __r"), Some(Around::Point(1)));
    assert_eq!(at("fn f"), None);
}
