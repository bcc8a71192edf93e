use super::*;

fn given(text: &str) -> Vec<&str> {
    let whole = text.trim();
    let mut values = scan(text).values;
    values.retain(|value| *value != whole);
    values
}

#[test]
fn values_written_as_values_are_given() {
    for (text, expected) in [
        ("mail anna@corp.example.", vec!["anna@corp.example"]),
        ("to Anna<anna@corp.example>", vec!["anna@corp.example"]),
        (
            "cc a@corp.example,b@corp.example now",
            vec!["a@corp.example", "b@corp.example"],
        ),
        ("see mailto:a@corp.example now", vec!["a@corp.example"]),
        ("open a@corp.example's inbox", vec!["a@corp.example"]),
        ("write cc:a@corp.example too", vec!["a@corp.example"]),
        ("<b>a@corp.example</b> is it", vec!["a@corp.example"]),
        (
            "send {\"id\":13, \"to\":\"anna\"} now",
            vec!["id", "13", "to", "anna"],
        ),
        ("take it—a@corp.example—now", vec!["a@corp.example"]),
        (
            "say \"a@corp.example,\" then",
            vec!["a@corp.example,", "a@corp.example"],
        ),
        (
            "read [the page](https://corp.example/a).",
            vec!["https://corp.example/a"],
        ),
        ("open src/main.rs, then stop", vec!["src/main.rs"]),
        ("delete \"Q3 report\" now", vec!["Q3 report"]),
        ("delete `13` now", vec!["13"]),
        ("delete file 13 now", vec!["13"]),
        ("close #13 now", vec!["#13", "13"]),
        (
            "tell @mark in #general",
            vec!["@mark", "mark", "#general", "general"],
        ),
        ("with id=13 now", vec!["id=13", "13"]),
        ("for user:mark now", vec!["user:mark", "mark"]),
        ("pay 250 EUR now", vec!["250"]),
        ("pay $98.70 now", vec!["$98.70", "98.70"]),
        ("wait 98.70 now", vec!["98.70"]),
        ("book 123456 now", vec!["123456"]),
        ("close PR-7 now", vec!["PR-7"]),
        ("close issues #12, 13 & 14", vec!["#12", "12", "13", "14"]),
        ("set max_size now", vec!["max_size"]),
        ("on 2024-05-13 at 10:30 go", vec!["2024-05-13", "10:30"]),
        (
            "to DE89 3704 0044 0532 0130 00 now",
            vec!["DE89 3704 0044 0532 0130 00"],
        ),
        ("call +49 170 1234567 now", vec!["+49 170 1234567"]),
        ("do it\n- anna\n- bob b", vec!["anna", "bob b"]),
        ("do it\nchannel: general", vec!["general"]),
    ] {
        assert_eq!(given(text), expected, "{text}");
    }
    assert_eq!(scan(" Delete it ").values, ["Delete it"]);
}

#[test]
fn prose_gives_nothing() {
    for text in [
        "send the report to mark please",
        "summarise the 13 newest invoices",
        "on May 13 we meet",
        "it costs $13 or 13%",
        "a well-known state-of-the-art thing",
        "don't stop, can't stop",
        "in Q3 use A4 paper",
        "see ./... and more",
        "My\\ Documents/a.txt now",
        "हिन्दी में लिखें और भेजें",
    ] {
        assert_eq!(given(text), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn a_piece_of_a_value_is_not_given() {
    for (text, piece) in [
        (
            "open \"My Documents/report.txt\" now",
            "Documents/report.txt",
        ),
        ("open \"My Documents/report.txt\" now", "report.txt"),
        ("pay 4111 1111 1111 1111 now", "1111"),
        ("call +49 170 1234567 now", "1234567"),
        ("call (555) 123-4567 now", "123-4567"),
        ("to GB29 NWBK 6016 1331 9268 19 now", "GB29"),
        (
            "get https://corp.example/a(b)/c now",
            "https://corp.example/a",
        ),
        ("on 2024-05-13 go", "13"),
        ("on January 10th, 2024 go", "2024"),
        ("open src/\"my dir\"/a.rs now", "src/"),
        ("open src/\"my dir\"/a.rs now", "/a.rs"),
        (
            "get https://corp.example/?q=\"a b\"&x=1 now",
            "https://corp.example/?q=",
        ),
        ("get https://corp.example/a—b now", "https://corp.example/a"),
        ("get https://corp.example/a… now", "https://corp.example/a"),
        ("clone git@corp.example:a/b.git now", "git@corp.example"),
        ("use pg:secret@db.example now", "secret@db.example"),
        ("write a@corp.example, 13 times", "13"),
        ("to mark@corp.example now", "mark"),
        ("to mark@corp.example now", "corp.example"),
    ] {
        assert!(!given(text).contains(&piece), "{text}");
    }
}
