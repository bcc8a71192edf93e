//! The examples of RFC 8785 and the pairs of its public test suite.

use super::super::number::ecmascript;
use super::*;

#[test]
fn the_sample_of_section_3_2_2_gives_the_bytes_of_section_3_2_4() {
    let sample = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50,
                    2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let bytes: Vec<u8> = "
        7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
        75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
        5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
        65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
        5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
        30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d"
        .split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    assert_eq!(canonicalize(sample.as_bytes()), Ok(bytes));
}

#[test]
fn keys_sort_as_in_section_3_2_3() {
    let sample = r#"{
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    assert_eq!(
        canonical(sample),
        concat!(
            r#"{"\r":"Carriage Return","1":"One","#,
            "\"\u{80}\":\"Control\",",
            "\"\u{f6}\":\"Latin Small Letter O With Diaeresis\",",
            "\"\u{20ac}\":\"Euro Sign\",",
            "\"\u{1f600}\":\"Emoji: Grinning Face\",",
            "\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
        )
    );
}

/// Appendix B; `None` where the number has no JSON form.
const NUMBERS: &[(u64, Option<&str>)] = &[
    (0x0000000000000000, Some("0")),
    (0x8000000000000000, Some("0")),
    (0x0000000000000001, Some("5e-324")),
    (0x8000000000000001, Some("-5e-324")),
    (0x7fefffffffffffff, Some("1.7976931348623157e+308")),
    (0xffefffffffffffff, Some("-1.7976931348623157e+308")),
    (0x4340000000000000, Some("9007199254740992")),
    (0xc340000000000000, Some("-9007199254740992")),
    (0x4430000000000000, Some("295147905179352830000")),
    (0x7fffffffffffffff, None),
    (0x7ff0000000000000, None),
    (0x44b52d02c7e14af5, Some("9.999999999999997e+22")),
    (0x44b52d02c7e14af6, Some("1e+23")),
    (0x44b52d02c7e14af7, Some("1.0000000000000001e+23")),
    (0x444b1ae4d6e2ef4e, Some("999999999999999700000")),
    (0x444b1ae4d6e2ef4f, Some("999999999999999900000")),
    (0x444b1ae4d6e2ef50, Some("1e+21")),
    (0x3eb0c6f7a0b5ed8c, Some("9.999999999999997e-7")),
    (0x3eb0c6f7a0b5ed8d, Some("0.000001")),
    (0x41b3de4355555553, Some("333333333.3333332")),
    (0x41b3de4355555554, Some("333333333.33333325")),
    (0x41b3de4355555555, Some("333333333.3333333")),
    (0x41b3de4355555556, Some("333333333.3333334")),
    (0x41b3de4355555557, Some("333333333.33333343")),
    (0xbecbf647612f3696, Some("-0.0000033333333333333333")),
    (0x43143ff3c1cb0959, Some("1424953923781206.2")),
];

#[test]
fn numbers_are_spelt_as_in_appendix_b() {
    for &(bits, expected) in NUMBERS {
        let value = f64::from_bits(bits);
        let Some(expected) = expected else {
            assert_eq!(to_vec(&value), Err(CanonicalError::NotFinite));
            continue;
        };
        assert_eq!(ecmascript(&mut ryu_js::Buffer::new(), value), expected);
        // Lodestar refuses those whose spelling is an integer that a reader cannot trust.
        let unsafe_integer = expected.parse::<i128>().is_ok_and(|n| n.abs() > 1 << 53);
        assert_eq!(
            to_vec(&value).map(text),
            if unsafe_integer {
                Err(CanonicalError::UnsafeInteger)
            } else {
                Ok(expected.to_owned())
            },
            "{bits:016x}"
        );
    }
}

#[test]
fn the_pairs_of_the_public_suite_hold() {
    let arrays = (
        "[\n  56,\n  {\n    \"d\": true,\n    \"10\": null,\n    \"1\": [ ]\n  }\n]",
        r#"[56,{"1":[],"10":null,"d":true}]"#,
    );
    let french = (
        r#"{
          "peach": "This sorting order",
          "péché": "is wrong according to French",
          "pêche": "but canonicalization MUST",
          "sin":   "ignore locale"
        }"#,
        r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
    );
    let structures = (
        r#"{
          "1": {"f": {"f": "hi","F": 5} ,"\n": 56.0},
          "10": { },
          "": "empty",
          "a": { },
          "111": [ {"e": "yes","E": "no" } ],
          "A": { }
        }"#,
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#,
    );
    let unicode = (
        r#"{ "Unnormalized Unicode":"A\u030a" }"#,
        "{\"Unnormalized Unicode\":\"A\u{30a}\"}",
    );
    let values = (
        r#"{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"#,
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
    );
    let weird = (
        r#"{
          "\u20ac": "Euro Sign",
          "\r": "Carriage Return",
          "\u000a": "Newline",
          "1": "One",
          "\u0080": "Control\u007f",
          "\ud83d\ude02": "Smiley",
          "\u00f6": "Latin Small Letter O With Diaeresis",
          "\ufb33": "Hebrew Letter Dalet With Dagesh",
          "</script>": "Browser Challenge"
        }"#,
        concat!(
            r#"{"\n":"Newline","\r":"Carriage Return","1":"One","</script>":"Browser Challenge","#,
            "\"\u{80}\":\"Control\u{7f}\",",
            "\"\u{f6}\":\"Latin Small Letter O With Diaeresis\",",
            "\"\u{20ac}\":\"Euro Sign\",",
            "\"\u{1f602}\":\"Smiley\",",
            "\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
        ),
    );
    for (input, output) in [arrays, french, structures, unicode, values, weird] {
        assert_eq!(canonical(input), output);
        assert!(is_canonical(output.as_bytes()));
        assert!(!is_canonical(input.as_bytes()));
    }
}
