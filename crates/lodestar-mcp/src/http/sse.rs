//! Events out of a stream of bytes, as HTML's standard for server-sent events has them.

/// Longest line beside data, such as an id: nobody needs more, and it is kept.
const MAX_FIELD: usize = 4096;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// What it carries; empty for one that only says where the stream can be taken up again.
    pub(crate) data: Vec<u8>,
    /// The id that it sets for the stream.
    pub(crate) id: Option<String>,
    /// How many milliseconds to wait before asking again.
    pub(crate) retry: Option<u64>,
}

/// An event was larger than anything that is taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Reads events.
#[derive(Debug)]
pub(crate) struct Events {
    limit: usize,
    /// Bytes behind the last line's end.
    rest: Vec<u8>,
    /// How much of them was looked at.
    looked: usize,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_return: bool,
    is_first: bool,
    event: Event,
    has_data: bool,
}

impl Events {
    /// Events of at most `limit` bytes of data.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            rest: Vec::new(),
            looked: 0,
            after_return: false,
            is_first: true,
            event: Event::default(),
            has_data: false,
        }
    }

    /// Takes bytes; gives the events that they end.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut given = Vec::new();
        self.rest.extend_from_slice(bytes);
        let mut start = 0;
        loop {
            if self.after_return && start < self.rest.len() {
                self.after_return = false;
                if self.rest[start] == b'\n' {
                    start += 1;
                    self.looked = self.looked.max(start);
                }
            }
            let from = self.looked.max(start);
            let Some(at) = memchr::memchr2(b'\n', b'\r', &self.rest[from..]) else {
                break;
            };
            let end = from + at;
            self.after_return = self.rest[end] == b'\r';
            let line = self.rest[start..end].to_vec();
            start = end + 1;
            self.looked = start;
            if let Some(event) = self.line(&line)? {
                given.push(event);
            }
        }
        self.rest.drain(..start);
        self.looked = self.rest.len();
        match self.rest.len() > self.limit + MAX_FIELD {
            true => Err(TooLarge),
            false => Ok(given),
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Event>, TooLarge> {
        let line = match std::mem::take(&mut self.is_first) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            self.has_data = false;
            let is_nothing = event == Event::default();
            return Ok((!is_nothing).then_some(event));
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[..0]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                if self.event.data.len() + value.len() > self.limit {
                    return Err(TooLarge);
                }
                self.event.data.extend_from_slice(value);
            }
            b"id" if value.len() <= MAX_FIELD && !value.contains(&0) => {
                self.event.id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            b"retry" => {
                let digits = std::str::from_utf8(value).ok();
                self.event.retry = digits.and_then(|digits| digits.parse().ok());
            }
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &[u8], step: usize) -> Vec<Event> {
        let mut events = Events::new(1000);
        let pieces = text.chunks(step);
        pieces
            .flat_map(|piece| events.take(piece).unwrap())
            .collect()
    }

    #[test]
    fn an_event_is_the_same_however_its_lines_end_and_its_bytes_arrive() {
        let wanted = [
            Event {
                data: b"{\"a\":\n1}".to_vec(),
                id: Some("7".to_owned()),
                retry: None,
            },
            Event {
                retry: Some(50),
                ..Event::default()
            },
        ];
        for end in ["\n", "\r\n", "\r"] {
            let text = format!(
                "\u{feff}: hello{end}id: 7{end}event: message{end}data: {{\"a\":{end}data:1}}{end}{end}{end}retry: 50{end}{end}"
            );
            for step in 1..text.len() {
                assert_eq!(all(text.as_bytes(), step), wanted, "{end:?} {step}");
            }
        }
    }

    #[test]
    fn an_event_that_is_too_large_is_refused_before_it_is_whole() {
        let mut events = Events::new(10);
        assert!(events.take(b"data: 0123456789\n").is_ok());
        assert_eq!(events.take(b"data: x\n"), Err(TooLarge));
        let mut events = Events::new(10);
        let line = vec![b'x'; MAX_FIELD + 11];
        assert_eq!(events.take(&line), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300), step in 1usize..20) {
            let mut events = Events::new(100);
            for piece in bytes.chunks(step) {
                let _ = events.take(piece);
            }
        }
    }
}
