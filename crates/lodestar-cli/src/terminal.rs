//! The person at the terminal: questions, and passphrases that nobody sees.
//!
//! It is `/dev/tty` and not standard input, so that a pipe can neither answer nor listen.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::{files, inert};

/// Longer is a paste gone wrong.
const LONGEST: usize = 1024;
/// A file with the passphrase, for automation; read only where nobody else can read it.
const PASSPHRASE_FILE: &str = "LODESTAR_PASSPHRASE_FILE";

/// The controlling terminal.
pub(crate) struct Terminal {
    tty: File,
}

/// Typed keys that mean something while a passphrase is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Byte(u8),
    Enter,
    Erase,
    EraseAll,
    Cancel,
}

impl Typed {
    fn from(byte: u8) -> Self {
        match byte {
            b'\r' | b'\n' => Self::Enter,
            0x08 | 0x7f => Self::Erase,
            0x15 => Self::EraseAll,
            0x03 | 0x04 | 0x1c => Self::Cancel,
            byte => Self::Byte(byte),
        }
    }
}

impl Terminal {
    /// `None` where there is no person: in a pipeline of a service, in a container without a tty.
    pub(crate) fn open() -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty");
        tty.ok().map(|tty| Self { tty })
    }

    /// Asks a question and gives the line that is typed.
    pub(crate) fn ask(&mut self, question: &str) -> Result<String, Failure> {
        self.say(question)?;
        let mut answer = Vec::new();
        let mut byte = [0];
        while answer.len() < LONGEST {
            match self.tty.read(&mut byte).map_err(Self::failed)? {
                0 => break,
                _ if byte[0] == b'\n' => break,
                _ => answer.push(byte[0]),
            }
        }
        Ok(String::from_utf8_lossy(&answer).trim().to_owned())
    }

    /// Asks for something that must not appear on the screen.
    pub(crate) fn ask_hidden(&mut self, question: &str) -> Result<Zeroizing<String>, Failure> {
        let quiet = Quiet::begin(&self.tty)?;
        self.say(question)?;
        let typed = self.read_hidden();
        drop(quiet);
        self.say("\n")?;
        typed
    }

    fn read_hidden(&mut self) -> Result<Zeroizing<String>, Failure> {
        // Room for all of it at once: a buffer that grows leaves copies behind.
        let mut typed = Zeroizing::new(Vec::with_capacity(LONGEST));
        let mut byte = Zeroizing::new([0]);
        loop {
            let read = self.tty.read(byte.as_mut_slice()).map_err(Self::failed)?;
            let key = if read == 0 {
                Typed::Cancel
            } else {
                Typed::from(byte[0])
            };
            match key {
                Typed::Enter => break,
                Typed::Cancel => return Err(Failure::usage("no passphrase was given")),
                Typed::EraseAll => typed.clear(),
                // One character may be several bytes; the rest of it follow the first.
                Typed::Erase => while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
                Typed::Byte(_) if typed.len() == LONGEST => {
                    return Err(Failure::usage("the passphrase is too long"));
                }
                Typed::Byte(byte) => typed.push(byte),
            }
        }
        str::from_utf8(&typed)
            .map(|text| Zeroizing::new(text.to_owned()))
            .map_err(|_| Failure::usage("the passphrase is not UTF-8"))
    }

    /// Says something; names in it may come from a file.
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.tty
            .write_all(inert::lines(text).as_bytes())
            .and_then(|()| self.tty.flush())
            .map_err(Self::failed)
    }

    /// Shows text that is inert already.
    pub(crate) fn show(&mut self, text: &str) -> Result<(), Failure> {
        self.tty
            .write_all(text.as_bytes())
            .and_then(|()| self.tty.flush())
            .map_err(Self::failed)
    }

    fn failed(error: std::io::Error) -> Failure {
        Failure::usage(format!("the terminal cannot be used: {error}"))
    }
}

/// While it lives, the terminal neither shows what is typed nor turns keys into signals, so that
/// an interruption cannot leave it silent.
struct Quiet {
    tty: File,
    before: Termios,
}

impl Quiet {
    fn begin(tty: &File) -> Result<Self, Failure> {
        let failed = |e: rustix::io::Errno| Terminal::failed(e.into());
        let before = termios::tcgetattr(tty).map_err(failed)?;
        let mut quiet = before.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        let handle = tty.try_clone().map_err(Terminal::failed)?;
        termios::tcsetattr(tty, OptionalActions::Flush, &quiet).map_err(failed)?;
        Ok(Self {
            tty: handle,
            before,
        })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(&self.tty, OptionalActions::Now, &self.before);
    }
}

/// A passphrase for a key that exists: from the file the environment names, or from the person.
pub(crate) fn passphrase_for(name: &str) -> Result<Zeroizing<String>, Failure> {
    if let Some(path) = std::env::var_os(PASSPHRASE_FILE).filter(|path| !path.is_empty()) {
        return passphrase_in(Path::new(&PathBuf::from(path)));
    }
    let Some(mut terminal) = Terminal::open() else {
        return Err(Failure::usage(format!(
            "the key of `{name}` needs its passphrase, and there is no terminal to ask on"
        ))
        .help(format!(
            "run it on a terminal, or let {PASSPHRASE_FILE} name a file of mode 0600 with the passphrase in it"
        )));
    };
    terminal.ask_hidden(&format!("Passphrase of {name}: "))
}

fn passphrase_in(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let text = files::read_private(path)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Zeroizing::new(
        line.strip_suffix('\r').unwrap_or(line).to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::Typed;

    #[test]
    fn keys_that_end_or_change_the_line_are_told_from_text() {
        for (byte, typed) in [
            (b'\r', Typed::Enter),
            (b'\n', Typed::Enter),
            (0x7f, Typed::Erase),
            (0x15, Typed::EraseAll),
            (0x03, Typed::Cancel),
            (0x04, Typed::Cancel),
            (b' ', Typed::Byte(b' ')),
            (0xc3, Typed::Byte(0xc3)),
        ] {
            assert_eq!(Typed::from(byte), typed);
        }
    }
}
