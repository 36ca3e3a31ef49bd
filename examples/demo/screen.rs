//! A table that is drawn again in place on a terminal, and printed line by line elsewhere.
use crossterm::{QueueableCommand, cursor, terminal};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two drawings.
const EVERY: Duration = Duration::from_secs(1);

/// Where the table goes.
pub(crate) struct Screen {
    terminal: bool,
    lines: u16,
    next: Instant,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stdout().is_terminal(), lines: 0, next: Instant::now() + EVERY }
    }

    /// Whether it is time to draw.
    pub(crate) fn due(&mut self) -> bool {
        let due = Instant::now() >= self.next;
        if due {
            self.next += EVERY;
        }
        due
    }

    /// Draws over what was drawn before.
    pub(crate) fn draw(&mut self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.terminal {
            if self.lines > 0 {
                out.queue(cursor::MoveToPreviousLine(self.lines))?;
            }
            out.queue(terminal::Clear(terminal::ClearType::FromCursorDown))?;
            self.lines = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
        }
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// The last drawing stays; what comes now goes below it.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        self.lines = 0;
        io::stdout().flush()
    }
}
