//! A part of the terminal that is drawn again in place, with everything else that is said above it.

use std::io::{self, IsTerminal as _, Write};

use parking_lot::Mutex;
use rustix::termios::tcgetwinsize;

/// What is drawn at the moment, the cursor being below it.
static DRAWN: Mutex<Drawn> = Mutex::new(Drawn { lines: Vec::new(), width: 0 });

struct Drawn {
    lines: Vec<Line>,
    /// How wide the terminal was.
    width: usize,
}

/// A line of the drawing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// What is seen.
    text: String,
    /// The words in it that have a colour, where the terminal has colours.
    colours: Vec<(String, Colour)>,
}

/// Colours that terminals have. They never say anything that the words do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Green,
    Yellow,
    Red,
}

impl Line {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), colours: Vec::new() }
    }

    /// Gives the first occurrence of a word a colour.
    pub(crate) fn colour(mut self, word: &str, colour: Colour) -> Self {
        self.colours.push((word.to_owned(), colour));
        self
    }

    /// The line, cut so that it fits into a row.
    pub(crate) fn cut(mut self, width: usize) -> Self {
        if self.text.chars().count() > width {
            self.text = self.text.chars().take(width.saturating_sub(1)).chain(['…']).collect();
        }
        self
    }

    /// How many rows of the terminal it takes.
    fn rows(&self, width: usize) -> usize {
        self.text.chars().count().div_ceil(width.max(1)).max(1)
    }

    fn painted(&self) -> String {
        self.colours.iter().fold(self.text.clone(), |text, (word, colour)| {
            let code = match colour {
                Colour::Green => 32,
                Colour::Yellow => 33,
                Colour::Red => 31,
            };
            text.replacen(word, &format!("\x1b[{code}m{word}\x1b[0m"), 1)
        })
    }
}

/// Whether standard output is a terminal on which things can be drawn in place.
pub(crate) fn is_drawable() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}

fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How many columns and rows the terminal has.
pub(crate) fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Draws lines in the place of those that were drawn before.
pub(crate) fn draw(lines: Vec<Line>) {
    let width = size().0;
    let mut drawn = DRAWN.lock();
    if drawn.lines == lines && drawn.width == width {
        return;
    }
    let mut text = erasure(&drawn.lines, width);
    text.push_str(&drawing(&lines, has_colours()));
    *drawn = Drawn { lines, width };
    put(&text);
}

/// Leaves what is drawn where it is. What is said from now on comes below.
pub(crate) fn leave() {
    if !std::mem::take(&mut DRAWN.lock().lines).is_empty() {
        // The terminal may have shown a key that was pressed.
        put("\r");
    }
}

/// Says a line to the person, above what is drawn.
pub(crate) fn say(line: &str) {
    // When standard error cannot be written, there is nobody to tell.
    let _ = Above.write_all(format!("{line}\n").as_bytes());
}

/// Standard error, above what is drawn.
#[derive(Debug)]
pub(crate) struct Above;

impl Write for Above {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let drawn = DRAWN.lock();
        if drawn.lines.is_empty() || !io::stderr().is_terminal() {
            return io::stderr().write_all(bytes).map(|()| bytes.len());
        }
        put(&erasure(&drawn.lines, size().0));
        let written = io::stderr().write_all(bytes);
        put(&drawing(&drawn.lines, has_colours()));
        written.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A terminal that has gone away is noticed by the signal that comes with it.
fn put(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Moves to the first row of what is drawn and clears everything below. A terminal that has become narrower has broken
/// long lines by itself.
fn erasure(drawn: &[Line], width: usize) -> String {
    match drawn.iter().map(|line| line.rows(width)).sum::<usize>() {
        0 => String::new(),
        rows => format!("\r\x1b[{rows}A\x1b[J"),
    }
}

fn drawing(lines: &[Line], colours: bool) -> String {
    let line = |line: &Line| if colours { line.painted() } else { line.text.clone() };
    lines.iter().flat_map(|each| [line(each), "\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_erased_is_what_a_terminal_shows() {
        let drawn = [Line::new("12345678"), Line::new(""), Line::new("123")];
        assert_eq!(erasure(&drawn, 8), "\r\x1b[3A\x1b[J");
        assert_eq!(erasure(&drawn, 3), "\r\x1b[5A\x1b[J");
        assert_eq!(erasure(&[], 8), "");
    }

    #[test]
    fn lines_are_cut_and_painted() {
        let line = Line::new("a is Ready now").colour("Ready", Colour::Green);
        assert_eq!(drawing(std::slice::from_ref(&line), true), "a is \x1b[32mReady\x1b[0m now\n");
        assert_eq!(drawing(&[line.clone().cut(9)], false), "a is Rea…\n");
        assert_eq!(drawing(&[line.cut(9)], true), "a is Rea…\n");
    }
}
