//! What `sed` does, by its script: it can write files and run commands.

use lodestar_core::ladder::Rung;

use super::{given, is_stream};
use crate::command::expand::Arg;
use crate::command::grade::{Grade, Grader};

/// Options that change how lines are read and shown, and nothing else.
const PLAIN: [&str; 5] = [
    "--quiet",
    "--silent",
    "--regexp-extended",
    "--debug",
    "--null-data",
];

impl Grader {
    pub(super) fn sed(&mut self, args: &[Arg], grade: &mut Grade) {
        let mut scripts: Vec<&Arg> = Vec::new();
        let mut operands: Vec<&Arg> = Vec::new();
        let mut in_place = false;
        let mut by_option = false;
        let mut ended = false;
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let text = arg.text.as_str();
            match () {
                () if ended && arg.is_known() => operands.push(arg),
                () if text == "--" => ended = true,
                () if !arg.is_known() => {
                    grade.raise(Rung::L4, "what `sed` does is only known when it runs");
                }
                () if PLAIN.contains(&text) => {}
                () if text == "--expression" => {
                    by_option = true;
                    scripts.extend(rest.next());
                }
                () if given(text, "--expression").is_some_and(|value| !value.is_empty()) => {
                    by_option = true;
                    let value = text.split_once('=').map_or("", |(_, value)| value);
                    self.sed_script(value, grade);
                }
                () if text.starts_with("--in-place") => {
                    in_place = true;
                    if text.contains('/') {
                        grade.raise(Rung::L4, "`sed` keeps a copy elsewhere");
                    }
                }
                () if given(text, "--file").is_some() => {
                    by_option = true;
                    let value = text.split_once('=').map(|(_, value)| Arg::fixed(value));
                    self.sed_file(value.as_ref().or_else(|| rest.next()), grade);
                }
                () if text.starts_with("--") && text.len() > 2 => {
                    grade.raise(Rung::L4, "nobody graded this option of `sed`")
                }
                () if arg.is_option() => {
                    let (head, letter, value) = cluster(text);
                    if !head.chars().all(|c| "nErsuz".contains(c)) {
                        grade.raise(Rung::L4, "nobody graded this option of `sed`");
                    }
                    match letter {
                        Some('e') => {
                            by_option = true;
                            match value {
                                "" => scripts.extend(rest.next()),
                                value => self.sed_script(value, grade),
                            }
                        }
                        Some('f') => {
                            by_option = true;
                            let value =
                                Some(Arg::fixed(value)).filter(|value| !value.text.is_empty());
                            self.sed_file(value.as_ref().or_else(|| rest.next()), grade);
                        }
                        // Some take a length here, others nothing: with a number, both are harmless.
                        Some('l') => {
                            let length = match value {
                                "" => rest.next().map_or("", |next| &next.text),
                                value => value,
                            };
                            if length.is_empty() || !length.chars().all(|c| c.is_ascii_digit()) {
                                grade.raise(Rung::L4, "what `sed` does is not clear");
                            }
                        }
                        Some('i') => {
                            in_place = true;
                            if value.contains('/') {
                                grade.raise(Rung::L4, "`sed` keeps a copy elsewhere");
                            }
                            // `-ie` is a suffix to some, and two options to others.
                            if let Some(at) = value.find('e') {
                                by_option = true;
                                match &value[at + 1..] {
                                    "" => scripts.extend(rest.next()),
                                    _ => grade.raise(Rung::L4, "what `sed` does is not clear"),
                                }
                            }
                        }
                        _ => {}
                    }
                }
                () => operands.push(arg),
            }
        }
        let mut operands = operands.into_iter();
        if !by_option {
            scripts.extend(operands.next());
        }
        for script in scripts {
            match script.is_known() {
                true => self.sed_script(&script.text, grade),
                false => grade.raise(Rung::L4, "what `sed` does is only known when it runs"),
            }
        }
        if in_place {
            grade.raise(Rung::L3, "`sed -i` changes files of the project");
        }
        for file in operands {
            match in_place {
                true => self.writes_file(file, grade),
                false => self.reads_file(file, grade),
            }
        }
    }

    fn sed_file(&mut self, file: Option<&Arg>, grade: &mut Grade) {
        grade.raise(Rung::L3, "`sed` runs a script from a file");
        if file.is_none_or(|file| is_stream(&file.text)) {
            grade.raise(Rung::L4, "`sed` runs whatever it reads");
        }
        if let Some(file) = file {
            self.works(std::slice::from_ref(file), grade);
        }
    }

    fn sed_script(&mut self, script: &str, grade: &mut Grade) {
        match effects(script) {
            None => grade.raise(Rung::L4, "the script of `sed` is not plain"),
            Some(effects) => {
                for effect in effects {
                    match effect {
                        Effect::Runs => grade.raise(Rung::L4, "the script of `sed` runs commands"),
                        Effect::Writes(path) => {
                            grade.raise(Rung::L3, "the script of `sed` writes a file");
                            self.writes_file(&Arg::fixed(&path), grade);
                        }
                        Effect::Reads(path) => self.reads_file(&Arg::fixed(&path), grade),
                    }
                }
            }
        }
    }
}

/// Letters behind a dash: those that take no value, and the first that takes one, with it.
fn cluster(text: &str) -> (&str, Option<char>, &str) {
    let letters = &text[1..];
    match letters.find(['e', 'f', 'i', 'l']) {
        Some(at) => (
            &letters[..at],
            letters[at..].chars().next(),
            &letters[at + 1..],
        ),
        None => (letters, None, ""),
    }
}

enum Effect {
    Runs,
    Writes(String),
    Reads(String),
}

/// What a script does beyond editing; none where it is not understood.
fn effects(script: &str) -> Option<Vec<Effect>> {
    let chars: Vec<char> = script.chars().collect();
    let mut at = 0;
    let mut effects = Vec::new();
    let line = |at: &mut usize| {
        let rest: String = chars[(*at).min(chars.len())..]
            .iter()
            .take_while(|c| **c != '\n')
            .collect();
        *at += rest.chars().count();
        rest.trim().to_owned()
    };
    // A part up to an unescaped sign.
    let until = |at: &mut usize, end: char| -> Option<()> {
        let mut bracket = false;
        loop {
            let c = *chars.get(*at)?;
            *at += 1;
            match c {
                '\\' => *at += 1,
                '\n' => return None,
                '[' if !bracket => bracket = true,
                ']' if bracket => bracket = false,
                c if c == end && !bracket => return Some(()),
                // Whether a sign in brackets ends the part, programs do not agree.
                c if c == end => return None,
                _ => {}
            }
        }
    };
    loop {
        while chars
            .get(at)
            .is_some_and(|c| c.is_whitespace() || *c == ';' || *c == '}')
        {
            at += 1;
        }
        if at >= chars.len() {
            return Some(effects);
        }
        // Addresses.
        loop {
            match chars.get(at)? {
                '0'..='9' | '$' | ',' | '~' | '+' | ' ' | '\t' | '!' => at += 1,
                '/' => {
                    at += 1;
                    until(&mut at, '/')?;
                    while matches!(chars.get(at), Some('I' | 'M')) {
                        at += 1;
                    }
                }
                '\\' => return None,
                _ => break,
            }
        }
        let command = *chars.get(at)?;
        at += 1;
        match command {
            '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z'
            | 'F' => {}
            'q' | 'Q' | 'l' | 'L' => {
                while chars
                    .get(at)
                    .is_some_and(|c| c.is_ascii_digit() || *c == ' ')
                {
                    at += 1;
                }
            }
            '#' => drop(line(&mut at)),
            // A blank ends a label, and what stands behind it is a command again.
            ':' | 'b' | 't' | 'T' => {
                while chars.get(at).is_some_and(|c| *c == ' ' || *c == '\t') {
                    at += 1;
                }
                while chars
                    .get(at)
                    .is_some_and(|c| !c.is_whitespace() && !matches!(c, ';' | '}'))
                {
                    at += 1;
                }
            }
            'a' | 'i' | 'c' => {
                // The text goes on while lines end in a backslash that is not escaped itself.
                loop {
                    let start = at;
                    line(&mut at);
                    let text = &chars[start.min(chars.len())..at.min(chars.len())];
                    at += 1;
                    if at >= chars.len() {
                        break;
                    }
                    let escapes = text.iter().rev().take_while(|c| **c == '\\').count();
                    let hidden = text.iter().rposition(|c| !c.is_whitespace());
                    match escapes {
                        1 => {}
                        // Programs do not agree on an escaped blank, or on an escaped escape.
                        0 if hidden.is_none_or(|last| text[last] != '\\') => break,
                        _ => return None,
                    }
                }
            }
            'r' | 'R' => effects.push(Effect::Reads(line(&mut at))),
            'w' | 'W' => effects.push(Effect::Writes(line(&mut at))),
            'e' => effects.push(Effect::Runs),
            's' | 'y' => {
                let sign = *chars.get(at)?;
                at += 1;
                if sign.is_alphanumeric() || sign == '\\' || sign.is_whitespace() {
                    return None;
                }
                until(&mut at, sign)?;
                replacement(&chars, &mut at, sign)?;
                while let Some(flag) = chars.get(at) {
                    match flag {
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => at += 1,
                        'e' => {
                            effects.push(Effect::Runs);
                            at += 1;
                        }
                        'w' => {
                            at += 1;
                            effects.push(Effect::Writes(line(&mut at)));
                        }
                        ';' | '\n' | ' ' | '}' => break,
                        _ => return None,
                    }
                }
            }
            _ => return None,
        }
        // Behind a command stands its end.
        while chars.get(at).is_some_and(|c| *c == ' ' || *c == '\t') {
            at += 1;
        }
        match (command, chars.get(at)) {
            ('{' | 'a' | 'i' | 'c', _) | (_, None | Some(';' | '\n' | '}' | '#')) => {}
            ('e', _) => return Some(effects),
            _ => return None,
        }
    }
}

/// The second part of `s` and `y`, in which brackets mean nothing.
fn replacement(chars: &[char], at: &mut usize, end: char) -> Option<()> {
    loop {
        let c = *chars.get(*at)?;
        *at += 1;
        match c {
            '\\' => *at += 1,
            c if c == end => return Some(()),
            _ => {}
        }
    }
}
