//! What `awk` does, by its program: it can run commands, open files and connect.

use lodestar_core::ladder::Rung;

use super::is_stream;
use crate::command::expand::Arg;
use crate::command::grade::{Grade, Grader};

/// Words that let a program do more than work on the lines that it is given.
const MORE: [&str; 9] = [
    "system", "getline", "ENVIRON", "PROCINFO", "ARGV", "/inet", "@load", "@include", "@",
];

/// Words behind which a slash opens a regular expression.
const DIVIDES_NOT: [&str; 10] = [
    "print", "printf", "return", "in", "else", "do", "case", "exit", "getline", "delete",
];

impl Grader {
    pub(super) fn awk(&mut self, args: &[Arg], grade: &mut Grade) {
        let mut program = true;
        let mut ended = false;
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let text = arg.text.as_str();
            match () {
                () if !arg.is_known() && (program || arg.splits) => {
                    grade.raise(Rung::L4, "what `awk` does is only known when it runs");
                }
                () if !ended && matches!(text, "-F" | "-v") => drop(rest.next()),
                () if !ended && (text.starts_with("-F") || text.starts_with("-v")) => {}
                () if !ended && text == "--" => ended = true,
                () if !ended && text == "-f" => {
                    grade.raise(Rung::L3, "`awk` runs a program from a file");
                    program = false;
                    if let Some(file) = rest.next() {
                        if is_stream(&file.text) {
                            grade.raise(Rung::L4, "`awk` runs whatever it reads");
                        }
                        self.works(std::slice::from_ref(file), grade);
                    }
                }
                () if arg.is_option() => {
                    grade.raise(Rung::L4, "nobody graded this option of `awk`")
                }
                () if std::mem::take(&mut program) => judge(text, grade),
                // `name=value` sets a variable.
                () if text
                    .split_once('=')
                    .is_some_and(|(name, _)| crate::command::syntax::is_name(name)) => {}
                () => self.reads_file(arg, grade),
            }
        }
    }
}

fn judge(text: &str, grade: &mut Grade) {
    if MORE.iter().any(|word| text.contains(word)) {
        return grade.raise(
            Rung::L4,
            "the program of `awk` runs commands or opens more than it is given",
        );
    }
    match redirects(text) {
        false => {}
        true => grade.raise(
            Rung::L4,
            "the program of `awk` writes files or starts programs",
        ),
    }
}

/// Whether a program sends anything elsewhere: a pipe anywhere, or `>` behind `print`. Signs in strings and
/// regular expressions do not count where it is clear that they stand in one.
fn redirects(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    let mut prints = false;
    let mut last = ' ';
    let mut word = String::new();
    let mut before = String::new();
    let mut stepped = false;
    while at < chars.len() {
        let c = chars[at];
        at += 1;
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            last = c;
            stepped = false;
            continue;
        }
        prints |= word.starts_with("print");
        if !word.is_empty() {
            before = std::mem::take(&mut word);
        }
        match c {
            '"' => {
                while chars.get(at).is_some_and(|c| *c != '"') {
                    at += 1 + usize::from(chars[at] == '\\');
                }
                at += 1;
                last = 'x';
                stepped = false;
                before.clear();
                continue;
            }
            // Behind a sign for a field and a line that goes on, it can be either, and nobody writes that.
            '/' if matches!(last, '$' | '\\') => return true,
            // Behind a parenthesis and a step it can be either, and what is opened there is not clear.
            '/' if (last == ')' || stepped || before == "length") && hides(&chars[at..]) => {
                return true;
            }
            // A slash behind an operand divides; elsewhere it opens a regular expression.
            '/' if !(last.is_ascii_alphanumeric()
                || matches!(last, ')' | ']' | '_')
                || stepped)
                || DIVIDES_NOT.contains(&before.as_str()) =>
            {
                while chars.get(at).is_some_and(|c| *c != '/') {
                    if chars[at] == '\n' || chars[at] == '[' {
                        return true;
                    }
                    at += 1 + usize::from(chars[at] == '\\');
                }
                at += 1;
                last = 'x';
                stepped = false;
                before.clear();
                continue;
            }
            '#' => {
                while chars.get(at).is_some_and(|c| *c != '\n') {
                    at += 1;
                }
            }
            // A statement goes on behind an escape, a comma and the like.
            '\n' if matches!(last, '\\' | ',' | '&' | '|' | '?' | ':') => {}
            // And what ended before it is no operand of what follows.
            '\n' => {
                prints = false;
                last = ';';
                before.clear();
            }
            ';' | '{' | '}' => prints = false,
            '|' if chars.get(at) == Some(&'|') => at += 1,
            '|' => return true,
            '>' if prints => return true,
            _ => {}
        }
        if !c.is_whitespace() {
            stepped = matches!(c, '+' | '-') && at >= 2 && chars[at - 2] == c;
            last = c;
            before.clear();
        }
    }
    false
}

/// Whether what follows a slash of two meanings could hide what sends anything elsewhere.
fn hides(rest: &[char]) -> bool {
    rest.contains(&'"')
        || (rest.iter().any(|c| "#/".contains(*c)) && rest.iter().any(|c| "|>".contains(*c)))
}
