use super::*;

fn same(a: &str, b: &str) -> bool {
    classify(a) == classify(b)
}

#[test]
fn every_text_has_one_kind() {
    for (text, kind) in [
        ("anna@corp.example", ValueKind::Email),
        ("anna.b+tag@corp.example", ValueKind::Email),
        ("root@localhost", ValueKind::Email),
        ("git@corp.example:team/repo.git", ValueKind::Path),
        ("anna@corp.example,bob@corp.example", ValueKind::Text),
        ("anna@cörp.example", ValueKind::Text),
        ("https://corp.example/a?b#c", ValueKind::Url),
        ("file:///etc/hosts", ValueKind::Url),
        ("https://corp.example\\@evil.example", ValueKind::Text),
        ("https://cоrp.example", ValueKind::Text),
        ("corp.example", ValueKind::Host),
        ("Corp.EXAMPLE:8080", ValueKind::Host),
        ("10.0.0.1", ValueKind::Host),
        ("::1", ValueKind::Host),
        ("report.txt", ValueKind::Path),
        ("main.rs", ValueKind::Path),
        ("src/main.rs", ValueKind::Path),
        ("/", ValueKind::Path),
        ("see a/b and c", ValueKind::Text),
        ("DE89 3704 0044 0532 0130 00", ValueKind::Account),
        ("DE88370400440532013000", ValueKind::Id),
        ("4111-1111-1111-1111", ValueKind::Account),
        ("4111111111111112", ValueKind::Id),
        ("+49 170 1234567", ValueKind::Phone),
        ("(555) 123-4567", ValueKind::Phone),
        ("2024-05-13", ValueKind::Id),
        ("550e8400-e29b-41d4-a716-446655440000", ValueKind::Id),
        ("13", ValueKind::Id),
        ("98.70", ValueKind::Id),
        ("INV-13", ValueKind::Id),
        ("mark", ValueKind::Text),
        ("", ValueKind::Text),
        ("two words", ValueKind::Text),
    ] {
        assert_eq!(classify(text).kind, kind, "{text}");
    }
}

#[test]
fn spellings_of_one_value_are_equal() {
    for (a, b) in [
        ("anna@Corp.EXAMPLE", "anna@corp.example"),
        ("HTTPS://Corp.example", "https://corp.example/"),
        ("https://corp.example:443/a", "https://corp.example/a"),
        ("http://corp.example:80", "http://corp.example"),
        ("https://corp.example/a/", "https://corp.example/a"),
        ("https://corp.example/%61%7E", "https://corp.example/a~"),
        ("https://corp.example/a%2fb", "https://corp.example/a%2Fb"),
        ("https://corp.example?q=%61", "https://corp.example/?q=a"),
        ("https://[0:0:0:0:0:0:0:1]/", "https://[::1]"),
        ("Corp.Example", "corp.example"),
        ("./a/b", "a/b"),
        ("a//b/", "a/b"),
        ("/a/./b", "/a/b"),
        ("./report.txt", "report.txt"),
        ("DE89370400440532013000", "de89 3704 0044 0532 0130 00"),
        ("4111 1111 1111 1111", "4111111111111111"),
        ("+49 (170) 123-4567", "+491701234567"),
        ("+33 1 23 45 67 89", "+33123456789"),
        ("(555) 123-4567", "555 123 4567"),
        (
            "550E8400-E29B-41D4-A716-446655440000",
            "550e8400-e29b-41d4-a716-446655440000",
        ),
    ] {
        assert!(same(a, b), "{a} {b}");
    }
}

#[test]
fn different_values_stay_apart() {
    for (a, b) in [
        ("Anna@corp.example", "anna@corp.example"),
        ("anna@corp.example", "аnna@corp.example"),
        ("anna@corp.example", "anna@corp.example "),
        ("anna@corp.example", "anna@corp.example."),
        ("anna@corp.example", "an\u{200b}na@corp.example"),
        ("anna@corp.example", "anna@sub.corp.example"),
        ("anna@corp.example", "anna+x@corp.example"),
        ("https://corp.example/A", "https://corp.example/a"),
        ("https://corp.example", "http://corp.example"),
        ("https://corp.example", "https://corp.example:8443"),
        ("https://corp.example", "https://corp.example:0443"),
        ("https://corp.example", "https://corp.example:"),
        ("https://corp.example", "https://u@corp.example"),
        ("https://corp.example", "https://@corp.example"),
        ("https://corp.example", "https://corp.example."),
        ("https://corp.example", "corp.example"),
        ("https://corp.example/a", "https://corp.example/a?"),
        ("https://corp.example/a", "https://corp.example/a#x"),
        ("https://corp.example/a", "https://corp.example/x/../a"),
        ("https://corp.example/a", "https://corp.example/x/%2e%2E/a"),
        ("https://corp.example/a/b", "https://corp.example/a%2Fb"),
        ("https://corp.example/a", "https://corp.example//a"),
        ("https://corp.example/", "https://corp.example//"),
        ("https://corp.example/a/", "https://corp.example/a//"),
        ("s3://bucket/a", "s3://bucket/a/"),
        ("http://127.0.0.1", "http://0x7f.1"),
        ("http://127.0.0.1", "http://2130706433"),
        ("corp.example", "corp.example:443"),
        ("a/b", "/a/b"),
        ("a/b", "a/B"),
        ("/a/b", "//a/b"),
        ("a/b", "a/x/../b"),
        ("a/b", "a\\b"),
        ("a/b", "~/a/b"),
        ("a/b", "a/%62"),
        ("README.md", "readme.md"),
        ("DE89370400440532013000", "DE89370400440532013001"),
        ("DE89370400440532013000", "DE893 70400440532013000"),
        (
            "DE89370400440532013000",
            "D E 8 9 3 7 0 4 0 0 4 4 0 5 3 2 0 1 3 0 0 0",
        ),
        ("4111111111111111", "411111111111111"),
        ("+491701234567", "+4-9-1-7-0-1-2-3-4-5-6-7"),
        ("+491701234567", "491701234567"),
        ("+491701234567", "+4901701234567"),
        ("2024-05-13", "20240513"),
        ("555-123-4567", "5551234567"),
        ("INV-13", "inv-13"),
        ("13", "013"),
        ("13", "13.0"),
        ("1.10", "1.1"),
        ("mark", "Mark"),
        ("a b", "a  b"),
        ("\u{e9}", "e\u{301}"),
    ] {
        assert!(!same(a, b), "{a} {b}");
    }
}

#[test]
fn a_numeral_says_one_number_or_none() {
    for (text, number) in [
        ("13", Some("13")),
        ("98.70", Some("98.7")),
        ("-5", Some("-5")),
        ("13.0", Some("13")),
        ("0.5", Some("0.5")),
        ("007", None),
        ("1e3", None),
        ("+1", None),
        (".5", None),
        ("5.", None),
        ("1234567890123456", None),
        ("", None),
        ("٣", None),
    ] {
        assert_eq!(numeral(text).as_deref(), number, "{text}");
    }
}

#[test]
fn the_host_of_a_url_is_found_behind_any_userinfo() {
    for (url, host) in [
        ("https://corp.example/a", "corp.example"),
        ("https://corp.example@evil.example/", "evil.example"),
        ("https://a:b@evil.example:8443", "evil.example"),
        ("https://[::1]:80/", "[::1]"),
        ("https://corp.example?x=@evil.example", "corp.example"),
    ] {
        assert_eq!(&url[host_range(url).unwrap()], host, "{url}");
    }
}
