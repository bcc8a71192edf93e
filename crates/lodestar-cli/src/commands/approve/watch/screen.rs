//! The terminal as a screen: taken over at the start and given back however the command ends.

use std::io::{self, IsTerminal as _, Write as _};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::Print;
use crossterm::terminal::{
    self, Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue};

use super::view::View;
use crate::cli::App;
use crate::failure::Failure;
use crate::paint::Paint;

/// Smaller ones are drawn as if they had this size.
const FEWEST_COLUMNS: usize = 20;
const FEWEST_ROWS: usize = 6;

pub(super) struct Screen {
    paint: Paint,
    /// What stands on it.
    drawn: Vec<String>,
}

impl Screen {
    /// Refuses where nobody would see it.
    pub(super) fn check(app: &App) -> Result<(), Failure> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if app.out.is_terminal && io::stdin().is_terminal() && !dumb {
            return Ok(());
        }
        Err(
            Failure::usage("`approve watch` needs a terminal that has a cursor")
                .help("`lodestar approve list`, or --json for a stream of what happens"),
        )
    }

    pub(super) fn enter(paint: Paint) -> Result<Self, Failure> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        terminal::enable_raw_mode()?;
        let screen = Self {
            paint,
            drawn: Vec::new(),
        };
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            DisableLineWrap,
            Hide,
            Clear(ClearType::All)
        )?;
        Ok(screen)
    }

    /// Everything has to be drawn again.
    pub(super) fn forget(&mut self) {
        self.drawn.clear();
    }

    /// Draws what differs from what stands there.
    pub(super) fn draw(&mut self, view: &mut View) -> Result<(), Failure> {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let columns = usize::from(columns).max(FEWEST_COLUMNS);
        let rows = usize::from(rows).max(FEWEST_ROWS);
        let lines = view.rows(columns, rows);
        let mut out = io::stdout().lock();
        if self.drawn.len() != lines.len() {
            queue!(out, Clear(ClearType::All))?;
            self.drawn = vec![String::new(); lines.len()];
        }
        for (row, (line, before)) in lines.into_iter().zip(&mut self.drawn).enumerate() {
            let text = line.fitted(columns).painted(self.paint);
            if text != *before {
                let row = u16::try_from(row).unwrap_or(u16::MAX);
                queue!(
                    out,
                    MoveTo(0, row),
                    Clear(ClearType::CurrentLine),
                    Print(&text)
                )?;
                *before = text;
            }
        }
        out.flush()?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let _ = execute!(io::stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}
