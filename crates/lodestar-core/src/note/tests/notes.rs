//! The form of a note.

use proptest::prelude::*;

use super::*;

#[test]
fn the_published_note_verifies() {
    let note = parse(&neumann()).unwrap();
    assert_eq!(note.text(), NEUMANN_TEXT);
    assert_eq!(note.signatures().len(), 1);
    assert_eq!(note.signatures()[0].key_hash, [0xc7, 0x4f, 0x20, 0xa3]);
    assert_eq!(note.to_string(), neumann());
    assert_eq!(
        key(NEUMANN_KEY).verify(&note),
        Ok(NoteVerified { time: None })
    );
    assert_eq!(key(NEUMANN_KEY).to_string(), NEUMANN_KEY);
}

#[test]
fn the_example_of_the_specification_verifies() {
    let key = key("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k");
    let note = parse(
        "This is an example message.\n\n\
         — example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n",
    )
    .unwrap();
    assert!(key.verify(&note).is_ok());
}

#[test]
fn the_text_may_have_empty_lines_and_lines_like_signatures() {
    for text in [
        "a\n\nb\n",
        "\n",
        "\n\n",
        &format!("{NEUMANN_TEXT}\n{NEUMANN_LINE}"),
    ] {
        let note = parse(&format!("{text}\n{NEUMANN_LINE}")).unwrap();
        assert_eq!(note.text(), text);
        assert_eq!(note.signatures().len(), 1);
        assert_eq!(
            key(NEUMANN_KEY).verify(&note),
            Err(NoteError::BadSignature("PeterNeumann".to_owned()))
        );
    }
}

#[test]
fn what_is_nearly_a_note_is_refused() {
    let malformed = |line: &str| NoteError::MalformedSignature(line.to_owned());
    let signature = NEUMANN_LINE.trim_end();
    let encoded = &signature["— PeterNeumann ".len()..];
    for (text, error) in [
        (String::new(), NoteError::NoSignatures),
        ("text\n".to_owned(), NoteError::NoSignatures),
        (NEUMANN_LINE.to_owned(), NoteError::NoSignatures),
        (format!("text\n{NEUMANN_LINE}"), NoteError::NoSignatures),
        (format!("text\n\n{signature}"), NoteError::NoSignatures),
        ("text\n\n".to_owned(), NoteError::NoSignatures),
        ("text\n\n\n".to_owned(), NoteError::NoSignatures),
        (format!("text\n\n{NEUMANN_LINE}\n"), NoteError::NoSignatures),
        (
            format!("text\r\n\n{NEUMANN_LINE}"),
            NoteError::ControlCharacter,
        ),
        (
            format!("te\txt\n\n{NEUMANN_LINE}"),
            NoteError::ControlCharacter,
        ),
        (
            format!("text\n\n{signature}\r\n"),
            NoteError::ControlCharacter,
        ),
        (
            format!("text\0\n\n{NEUMANN_LINE}"),
            NoteError::ControlCharacter,
        ),
    ] {
        assert_eq!(parse(&text), Err(error), "{text:?}");
    }
    for line in [
        format!("- PeterNeumann {encoded}"),
        format!("\u{2013} PeterNeumann {encoded}"),
        format!("—PeterNeumann {encoded}"),
        format!("—  PeterNeumann {encoded}"),
        format!("— PeterNeumann  {encoded}"),
        format!("— PeterNeumann {encoded} "),
        format!(" — PeterNeumann {encoded}"),
        format!("— Peter Neumann {encoded}"),
        format!("— Peter\u{a0}Neumann {encoded}"),
        format!("— Peter+Neumann {encoded}"),
        format!("—  {encoded}"),
        "— PeterNeumann".to_owned(),
        "— PeterNeumann ".to_owned(),
        // Four bytes are a key hash without a signature.
        "— PeterNeumann AAAAAA==".to_owned(),
        // Padding left out, doubled, or with bits set that mean nothing; the URL alphabet.
        format!("— PeterNeumann {}", encoded.trim_end_matches('=')),
        format!("— PeterNeumann {encoded}="),
        format!("— PeterNeumann {}", encoded.replace("AM=", "AN=")),
        format!("— PeterNeumann {}", encoded.replace('/', "_")),
        "text".to_owned(),
    ] {
        let text = format!("text\n\n{line}\n");
        assert_eq!(parse(&text), Err(malformed(&line)), "{line:?}");
        let text = format!("text\n\n{NEUMANN_LINE}{line}\n");
        assert_eq!(parse(&text), Err(malformed(&line)), "{line:?}");
    }
    assert_eq!(Note::parse(b"t\xff\n\n"), Err(NoteError::NotUtf8));
    assert_eq!(Note::new("text"), Err(NoteError::UnfinishedText));
    assert_eq!(Note::new(""), Err(NoteError::UnfinishedText));
    assert_eq!(Note::new("te\u{7}xt\n"), Err(NoteError::ControlCharacter));
}

#[test]
fn length_and_number_of_signatures_are_limited() {
    let longest = MAX_NOTE_LEN - NEUMANN_LINE.len() - 2;
    let text = format!("{}\n\n{NEUMANN_LINE}", "x".repeat(longest));
    assert_eq!(text.len(), MAX_NOTE_LEN);
    let mut note = parse(&text).unwrap();
    assert_eq!(
        parse(&format!("x{text}")),
        Err(NoteError::TooLong(MAX_NOTE_LEN + 1))
    );
    let another = NoteSignature {
        name: "other".to_owned(),
        key_hash: [0; 4],
        bytes: vec![0],
    };
    assert!(matches!(
        note.add_signature(another.clone()),
        Err(NoteError::TooLong(_))
    ));
    assert_eq!(note.to_string(), text);

    let mut note = Note::new("text\n").unwrap();
    for n in 0..MAX_NOTE_SIGNATURES {
        note.add_signature(NoteSignature {
            name: format!("key-{n}"),
            ..another.clone()
        })
        .unwrap();
    }
    assert_eq!(parse(&note.to_string()).as_ref(), Ok(&note));
    assert_eq!(
        note.add_signature(another.clone()),
        Err(NoteError::TooManySignatures)
    );
    assert_eq!(
        parse(&format!("{note}{another}\n")),
        Err(NoteError::TooManySignatures)
    );
}

#[test]
fn a_key_signs_once() {
    let twice = format!("{}{NEUMANN_LINE}", neumann());
    assert_eq!(
        parse(&twice),
        Err(NoteError::DuplicateSignature("PeterNeumann".to_owned()))
    );
    // The same name with another key is another key.
    let mut note = parse(&neumann()).unwrap();
    note.add_signature(NoteSignature {
        name: "PeterNeumann".to_owned(),
        key_hash: [0; 4],
        bytes: vec![0; 64],
    })
    .unwrap();
    assert!(key(NEUMANN_KEY).verify(&note).is_ok());
}

#[test]
fn unusable_signatures_are_not_added() {
    let mut note = Note::new("text\n").unwrap();
    for name in ["", "a b", "a+b", "a\nb", "a\u{2003}b", "a\u{1}b"] {
        assert_eq!(
            note.add_signature(NoteSignature {
                name: name.to_owned(),
                key_hash: [0; 4],
                bytes: vec![0; 64],
            }),
            Err(NoteError::BadName(name.to_owned()))
        );
        assert_eq!(
            NoteKey::ed25519(name, &secret(1).public()),
            Err(NoteError::BadName(name.to_owned()))
        );
        assert_eq!(
            encode_secret(name, &secret(1)).unwrap_err(),
            NoteError::BadName(name.to_owned())
        );
    }
    assert!(matches!(
        note.add_signature(NoteSignature {
            name: "a".to_owned(),
            key_hash: [0; 4],
            bytes: Vec::new(),
        }),
        Err(NoteError::MalformedSignature(_))
    ));
    assert!(note.signatures().is_empty());
}

proptest! {
    #[test]
    fn what_parses_prints_the_same_bytes(
        lines in prop::collection::vec("(— |-|—)?(PeterNeumann |[a-z+ ]{0,3})?(AAAAAAA=|[A-Za-z0-9/+=]{0,12})?", 0..6),
        text in "[ -~\n]{0,20}\n",
    ) {
        let candidate = format!("{text}\n{}\n", lines.join("\n"));
        if let Ok(note) = parse(&candidate) {
            prop_assert_eq!(note.to_string(), candidate);
        }
    }

    #[test]
    fn no_bytes_make_the_readers_panic(bytes: Vec<u8>, text: String) {
        let _ = Note::parse(&bytes);
        let _ = text.parse::<NoteKey>();
        let _ = parse_secret(&text);
        let _ = Checkpoint::parse_body(&text);
    }
}
