//! Characters that do not show what they are: where one stands in a command line, a person decides.

/// What is wrong with a character anywhere in a line, quoted or not.
pub(super) fn hidden(c: char) -> Option<&'static str> {
    match c {
        '\n' | '\t' => None,
        _ if c.is_control() => Some("a control character"),
        '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => Some("a character that turns the direction of text"),
        '\u{00ad}'
        | '\u{034f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}'
        | '\u{e0000}'..='\u{e0fff}' => Some("a character that cannot be seen"),
        '\u{2028}' | '\u{2029}' => Some("a line break that shells do not know"),
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. => Some("a character of private use"),
        _ if c != ' ' && c.is_whitespace() => Some("a blank that shells do not know"),
        _ => None,
    }
}

/// Whether a word that names a program or an option is written in characters that can be told apart.
pub(super) fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
}
