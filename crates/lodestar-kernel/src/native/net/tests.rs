use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::address::{AddressClass, AllowedAddress, refused};
use super::credential::{CredentialError, SCRUBBED, Scrubber, Secret, Source};
use super::endpoint::{Endpoint, Location, Scheme, UrlRefused};
use super::testing::private_file;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn every_special_address_is_refused_and_its_neighbours_are_not() {
    use AddressClass::*;
    for (text, class) in [
        ("0.0.0.0", Unspecified),
        ("0.255.255.255", Unspecified),
        ("10.0.0.0", Private),
        ("10.255.255.255", Private),
        ("100.64.0.0", SharedNat),
        ("100.127.255.255", SharedNat),
        ("127.0.0.1", Loopback),
        ("127.255.255.255", Loopback),
        ("168.63.129.16", Metadata),
        ("169.254.169.254", LinkLocal),
        ("172.16.0.0", Private),
        ("172.31.255.255", Private),
        ("192.0.0.192", Reserved),
        ("192.0.2.1", Documentation),
        ("192.88.99.1", Tunnel),
        ("192.168.255.255", Private),
        ("198.18.0.0", Benchmarking),
        ("198.19.255.255", Benchmarking),
        ("198.51.100.7", Documentation),
        ("203.0.113.7", Documentation),
        ("224.0.0.1", Multicast),
        ("239.255.255.255", Multicast),
        ("240.0.0.1", Reserved),
        ("255.255.255.255", Reserved),
        ("::", Unspecified),
        ("::1", Loopback),
        ("::7f00:1", Reserved),
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:169.254.169.254", LinkLocal),
        ("::ffff:0:127.0.0.1", Reserved),
        ("64:ff9b::7f00:1", Loopback),
        ("64:ff9b::a9fe:a9fe", LinkLocal),
        ("64:ff9b:1::7f00:1", Reserved),
        ("100::1", Reserved),
        ("2001::7f00:1", Tunnel),
        ("2001:2::1", Benchmarking),
        ("2001:10::1", Reserved),
        ("2001:db8::1", Documentation),
        ("2002:7f00:1::", Tunnel),
        ("2a00:1450::5efe:7f00:1", Loopback),
        ("2a00:1450::200:5efe:a00:1", Private),
        ("3fff::1", Documentation),
        ("fc00::1", Private),
        ("fd00:ec2::254", Private),
        ("fe80::1", LinkLocal),
        ("febf::1", LinkLocal),
        ("fec0::1", Private),
        ("ff02::1", Multicast),
    ] {
        assert_eq!(refused(ip(text)), Some(class), "{text}");
    }
    for text in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2606:4700:4700::1111",
        "2a00:1450:4001:800::200e",
    ] {
        assert_eq!(refused(ip(text)), None, "{text}");
    }
}

#[test]
fn the_operator_opens_ranges_and_single_ports() {
    let range: AllowedAddress = "10.1.0.0/16".parse().unwrap();
    assert!(range.opens("10.1.2.3:80".parse().unwrap()));
    assert!(range.opens("[::ffff:10.1.2.3]:80".parse().unwrap()));
    assert!(!range.opens("10.2.2.3:80".parse().unwrap()));
    let port: AllowedAddress = "127.0.0.1:8080".parse().unwrap();
    assert!(port.opens("127.0.0.1:8080".parse().unwrap()));
    assert!(!port.opens("127.0.0.1:8081".parse().unwrap()));
    assert!(!port.opens("127.0.0.2:8080".parse().unwrap()));
    for bad in [
        "127.0.0.1",
        "localhost:80",
        "0.0.0.0/0",
        "::/0",
        "10.0.0.0/7",
        "",
    ] {
        assert!(bad.parse::<AllowedAddress>().is_err(), "{bad}");
    }
}

#[test]
fn a_host_has_one_spelling() {
    // Each of these reaches loopback with some client.
    for host in [
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "127.000.000.001",
        "%31%32%37.0.0.1",
        "127%2e0.0.1",
        "[0:0:0:0:0:0:0:1]",
        "[::0001]",
        "[::ffff:127.0.0.1]",
        "good.test.",
        "go%6fd.test",
    ] {
        let refused = Location::parse(&format!("https://{host}/")).unwrap_err();
        assert!(
            matches!(refused, UrlRefused::Spelling { .. }),
            "{host}: {refused:?}"
        );
    }
    for host in ["１２７.0.0.1", "127。0。0。1", "ⓖood.test", "gооd.test"] {
        let refused = Location::parse(&format!("https://{host}/")).unwrap_err();
        assert!(
            matches!(refused, UrlRefused::Character { .. }),
            "{host}: {refused:?}"
        );
    }
    for host in [
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "256.256.256.256",
        "1.2.3.4.5",
        "a b",
    ] {
        assert!(
            Location::parse(&format!("https://{host}/")).is_err(),
            "{host}"
        );
    }
    // The canonical ones are read, and left to the address check.
    for host in [
        "127.0.0.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "Good.Test",
        "xn--gd-sjan.test",
    ] {
        assert!(
            Location::parse(&format!("https://{host}/")).is_ok(),
            "{host}"
        );
    }
}

#[test]
fn a_url_says_plainly_where_it_goes() {
    for (text, reason) in [
        ("https://good.test@evil.test/", "user"),
        ("https://good.test:443@evil.test/", "user"),
        ("https://@evil.test/", "user"),
        ("https://good.test\\@evil.test/", "percent-encoded"),
        ("https://good.test/\r\nHost: evil.test", "percent-encoded"),
        ("https://good\t.test/", "percent-encoded"),
        (" https://good.test/", "percent-encoded"),
        ("https://good.test/\0", "percent-encoded"),
        ("https://good.test/#part", "fragment"),
        ("https:good.test/", "no url"),
        ("https:///good.test/", "spelling"),
        ("https://", "no url"),
        ("file://good.test/etc/passwd", "scheme"),
        ("gopher://good.test/", "scheme"),
        ("javascript://good.test/", "scheme"),
        ("//good.test/", "no url"),
        ("good.test", "no url"),
        ("", "no url"),
    ] {
        let refused = Location::parse(text).unwrap_err().to_string();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
    let long = format!("https://good.test/{}", "a".repeat(5000));
    assert!(matches!(
        Location::parse(&long),
        Err(UrlRefused::TooLong { .. })
    ));
}

#[test]
fn an_entry_is_a_host_and_nothing_else() {
    let read = |text| Endpoint::parse(Scheme::Https, text);
    assert_eq!(read("a.test").unwrap().to_string(), "https://a.test");
    assert_eq!(read("a.test:443").unwrap(), read("a.test").unwrap());
    assert_eq!(read("a.test:8443").unwrap().port(), 8443);
    for bad in [
        "a.test/path",
        "a.test?x",
        "u@a.test",
        "*.test",
        "",
        "a.test:x",
        "https://a.test",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_secret_file_that_others_can_read_is_refused() {
    let file = private_file("s3cret-token-value\n");
    let source = Source::File(file.path().to_owned());
    assert_eq!(source.read().unwrap().expose(), "s3cret-token-value");
    for mode in [0o640, 0o604, 0o620, 0o601] {
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = source.read().unwrap_err();
        assert!(
            matches!(refused, CredentialError::OpenToOthers { .. }),
            "{mode:o}"
        );
        assert!(!refused.to_string().contains("s3cret"));
    }
}

#[test]
fn a_secret_is_one_line_of_visible_ascii() {
    for bad in [
        "",
        "short",
        "two\nlines-of-secret",
        "nul\0nul\0nul",
        "ключключключ",
    ] {
        let file = private_file(bad);
        let refused = Source::File(file.path().to_owned()).read().unwrap_err();
        assert!(matches!(refused, CredentialError::Unfit { .. }), "{bad:?}");
    }
    assert!(matches!(
        Source::File("/nowhere/at/all".into()).read(),
        Err(CredentialError::Unreadable { .. })
    ));
    assert!(matches!(
        Source::File("/dev/zero".into()).read(),
        Err(CredentialError::Unreadable { .. })
    ));
    assert!(matches!(
        Source::Env("LODESTAR_TEST_NOT_SET".into()).read(),
        Err(CredentialError::NotSet { .. })
    ));
    assert!(Source::of(Some("A"), Some("b".as_ref())).is_err());
    // A variable that is there wherever tests run.
    let secret = Source::Env("PATH".into()).read().unwrap();
    assert_eq!(secret.expose(), std::env::var("PATH").unwrap().trim());
    assert_eq!(format!("{secret:?}"), "Secret(..)");
}

#[test]
fn an_echo_of_a_secret_is_found_in_its_common_forms() {
    let file = private_file("to/ken+\"Value\"&42");
    let secret = Source::File(file.path().to_owned()).read().unwrap();
    let scrubber = Scrubber::of(&secret);
    for echo in [
        "to/ken+\"Value\"&42",
        "TO/KEN+\"VALUE\"&42",
        "dG8va2VuKyJWYWx1ZSImNDI=",
        "dG8va2VuKyJWYWx1ZSImNDI",
        "746f2f6b656e2b2256616c7565222634 32"
            .replace(' ', "")
            .as_str(),
        "to%2Fken%2B%22Value%22%2642",
        "to%2fken%2b%22value%22%2642",
        r#"to/ken+\"Value\"&42"#,
        r#"to\/ken+\"Value\"&42"#,
        "to/ken+&quot;Value&quot;&amp;42",
    ] {
        let (text, count) = scrubber.scrub_text(&format!("<{echo}> and <{echo}>"));
        assert_eq!(text, format!("<{SCRUBBED}> and <{SCRUBBED}>"), "{echo}");
        assert_eq!(count, 2);
    }
    let (text, count) = scrubber.scrub_text("nothing of the sort");
    assert_eq!((text.as_str(), count), ("nothing of the sort", 0));
}

#[test]
fn the_password_inside_a_basic_credential_is_a_secret_too() {
    // ann:correct-horse
    let file = private_file("Basic YW5uOmNvcnJlY3QtaG9yc2U=");
    let secret = Source::File(file.path().to_owned()).read().unwrap();
    let scrubber = Scrubber::of(&secret);
    for echo in [
        "ann:correct-horse",
        "correct-horse",
        "YW5uOmNvcnJlY3QtaG9yc2U=",
    ] {
        let (text, count) = scrubber.scrub_text(echo);
        assert_eq!((text.as_str(), count), (SCRUBBED, 1), "{echo}");
    }
}

proptest! {
    #[test]
    fn whatever_stands_around_it_a_secret_is_gone(
        secret in "[a-z0-9/+=-]{8,40}",
        around in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..6),
    ) {
        let scrubber = Scrubber::of(&Secret::part(&secret));
        let body = around.join(secret.as_bytes());
        let (clean, count) = scrubber.scrub(body);
        let clean = String::from_utf8_lossy(&clean).to_lowercase();
        prop_assert!(!clean.contains(&secret));
        prop_assert!(count >= around.len() - 1);
    }

    #[test]
    fn a_url_that_is_read_names_its_host_as_it_was_written(
        host in "[a-zA-Z0-9.:@%\\[\\]x_-]{0,24}",
        rest in "[/?#a-z.%\\\\@]{0,12}",
    ) {
        if let Ok(location) = Location::parse(&format!("https://{host}/{rest}")) {
            let written = host.to_ascii_lowercase();
            let read = location.endpoint().host().to_string();
            prop_assert_eq!(written.strip_suffix(&format!(":{}", location.endpoint().port())).unwrap_or(&written).trim_end_matches(':'), read.as_str());
        }
    }

    #[test]
    fn an_ipv4_address_is_refused_in_all_its_ipv6_dresses(bits in any::<u32>()) {
        let v4 = std::net::Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = v4.octets();
        let low = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        if refused(v4.into()).is_some() {
            for dress in [
                v4.to_ipv6_mapped(),
                v4.to_ipv6_compatible(),
                std::net::Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, low[0], low[1]),
                std::net::Ipv6Addr::new(0x2002, low[0], low[1], 0, 0, 0, 0, 1),
                std::net::Ipv6Addr::new(0x2001, 0, low[0], low[1], 0, 0, !low[0], !low[1]),
                std::net::Ipv6Addr::new(0x2a00, 1, 2, 3, 0, 0x5efe, low[0], low[1]),
            ] {
                prop_assert!(refused(dress.into()).is_some(), "{dress}");
            }
        }
    }
}

#[test]
fn a_password_in_a_url_is_never_repeated() {
    for url in [
        "http://user:hunter2@host.example",
        "https://user:hunter2@127.0.0.1:4318/v1/traces",
        "https://user:hunter/hunter2@host.example",
        "https://user:a@hunter2@host.example",
        "user:hunter2@host.example",
        "ftp://user:hunter2@host.example",
        "https://user:hunter2@host.example/#x",
    ] {
        let refused = Location::parse(url).expect_err(url).to_string();
        assert!(!refused.contains("hunter"), "{refused}");
        assert!(
            refused.contains("host.example") || refused.contains("127.0.0.1"),
            "{refused}"
        );
    }
}
