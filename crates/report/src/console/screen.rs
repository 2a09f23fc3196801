//! Lines at the bottom of a terminal that are redrawn in place, below lines that stay.
//!
//! Only uses features of every terminal since the VT100: up by lines, to the start of the line, clear to the end of the
//! line or screen. It uses the main screen of the terminal, so that earlier output stays in its scrollback, and only
//! the lines themselves need to be restored. A terminal that became narrower may have wrapped old lines; some do and
//! some do not, and none reports it. Exactly the drawn number of lines is cleared: if they were wrapped, some remain
//! above, and nothing else is overwritten.

use std::io::{self, Write};

use super::draw::{Line, Style};
use super::line::{plain, plain_lines};

/// The drawn lines.
pub struct Screen<W: Write> {
    out: W,
    /// Whether colors are allowed; bold and dim count as colors.
    color: bool,
    drawn: Vec<Line>,
}

impl<W: Write> Screen<W> {
    /// Nothing is drawn yet.
    pub fn new(out: W, color: bool) -> Self {
        Self {
            out,
            color,
            drawn: Vec::new(),
        }
    }

    /// Redraws the lines in place. Unchanged lines are not written again.
    pub fn draw(&mut self, lines: Vec<Line>) -> io::Result<()> {
        if lines == self.drawn {
            return Ok(());
        }
        let text = self.taken_back() + &self.rendered(&lines);
        self.drawn = lines;
        self.write(&text)
    }

    /// Writes a text above, which stays, and redraws the lines.
    pub fn insert(&mut self, text: &str) -> io::Result<()> {
        let drawn = self.rendered(&self.drawn);
        let back = self.taken_back();
        self.write(&format!("{back}{}\n{drawn}", plain_lines(text)))
    }

    /// Removes the lines.
    pub fn clear(&mut self) -> io::Result<()> {
        let back = self.taken_back();
        self.drawn.clear();
        self.write(&back)
    }

    /// Leaves the lines as they are, and continues below them.
    pub fn leave(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.drawn).is_empty() {
            Ok(())
        } else {
            self.write("\n")
        }
    }

    /// The cursor is in the last drawn line.
    fn taken_back(&self) -> String {
        match self.drawn.len() {
            0 => String::new(),
            1 => "\r\x1b[J".into(),
            num => format!("\r\x1b[{}A\x1b[J", num - 1),
        }
    }

    fn rendered(&self, lines: &[Line]) -> String {
        let lines: Vec<String> = lines.iter().map(|line| self.ansi(line)).collect();
        lines.join("\n")
    }

    fn ansi(&self, line: &Line) -> String {
        let parts = line.iter().map(|(style, text)| {
            let code = match style {
                Style::Bold => "1",
                Style::Dim => "2",
                Style::Bad => "31",
                Style::Chosen => "36",
                Style::Plain => "",
            };
            let text = plain(text);
            if self.color && !code.is_empty() {
                format!("\x1b[{code}m{text}\x1b[0m")
            } else {
                text
            }
        });
        parts.collect()
    }

    /// In one write, so that no partial drawing is visible.
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        vec![(Style::Bold, text.to_owned())]
    }

    /// What a terminal of 20 columns and 9 lines shows.
    fn shown(screen: &Screen<Vec<u8>>) -> String {
        let (lines, columns) = (9.try_into().unwrap(), 20.try_into().unwrap());
        let mut terminal = vt100::Parser::new(lines, columns, 100);
        // A terminal's driver puts a carriage return before each newline.
        let bytes = String::from_utf8(screen.out.clone()).unwrap();
        terminal.process(bytes.replace('\n', "\r\n").as_bytes());
        terminal.screen().contents()
    }

    #[test]
    fn lines_are_drawn_in_place_and_others_stay_above() {
        let mut screen = Screen::new(Vec::new(), true);
        screen
            .draw(vec![line("one"), line("two"), line("three")])
            .unwrap();
        screen.insert("said").unwrap();
        assert_eq!(shown(&screen), "said\none\ntwo\nthree");
        screen.draw(vec![line("1"), line("2")]).unwrap();
        assert_eq!(shown(&screen), "said\n1\n2");
        screen.insert("more\n\x1b[2J").unwrap();
        assert_eq!(shown(&screen), "said\nmore\n\\u001b[2J\n1\n2");
        screen.clear().unwrap();
        assert_eq!(shown(&screen), "said\nmore\n\\u001b[2J");
        screen.draw(vec![line("end")]).unwrap();
        screen.leave().unwrap();
        screen.insert("after").unwrap();
        assert_eq!(shown(&screen), "said\nmore\n\\u001b[2J\nend\nafter");
    }

    #[test]
    fn what_has_not_changed_is_not_written() {
        let mut screen = Screen::new(Vec::new(), false);
        screen.draw(vec![line("one")]).unwrap();
        screen.draw(vec![line("one")]).unwrap();
        assert_eq!(screen.out, b"one");
    }
}
