//! Live progress: events in, text and a board out, all to standard error. On a terminal the board is below the
//! scrolling lines; elsewhere there are only lines.
//!
//! `board` is the state, `pace` the remaining time, `draw` the board as lines of text, `words` an event as a line,
//! `keys` the meaning of keys. None of them knows a terminal; `screen` draws on one and `terminal` has its settings.

mod board;
mod draw;
mod fetching;
mod keys;
mod line;
mod pace;
mod screen;
mod terminal;
#[cfg(test)]
mod tests;
mod words;

use std::io::Stderr;
use std::time::{Duration, Instant};

pub use board::{Board, Row, State};
use draw::{View, draw};
pub use fetching::Fetching;
pub use keys::Command;
use keys::Keys;
use line::plain_lines;
pub use pace::duration;
use runner_core::event::Event;
use runner_core::plan::RunPlan;
use runner_core::record::{RunRecord, available_memory, total_memory};
use runner_core::spec::{printable_in_color, printable_lines};
use runner_core::table::folded;
use screen::Screen;
use terminal::Terminal;

/// How often a long run gets a line if there is no board.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// How often the board is drawn and keys are read.
pub const TICK: Duration = Duration::from_millis(100);

/// How often the host's memory is measured.
const MEMORY_INTERVAL: Duration = Duration::from_secs(2);

/// The maximum number of lines of a board: more would push everything else off the screen.
const MAX_HEIGHT: usize = 30;

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A board or lines.
    Normal,
    /// Only failures.
    Quiet,
}

/// What is shown, and how.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// How much.
    pub mode: Mode,
    /// Whether a board is allowed, if standard error is a terminal.
    pub may_draw: bool,
    /// Whether colors are allowed.
    pub color: bool,
    /// Whether keys may control the training, or only the display.
    pub may_change: bool,
}

/// Shows the runs of experiments.
pub struct Console {
    look: Look,
    boards: Vec<Board>,
    canvas: Option<Canvas>,
    keys: Keys,
    /// Keys no longer have an effect.
    is_over: bool,
    last_tick: Option<Instant>,
    started: Instant,
    last_plain: Vec<Vec<Option<Instant>>>,
}

/// The screen of the board.
struct Canvas {
    terminal: Terminal,
    screen: Screen<Stderr>,
    /// Whether this process has the terminal; a board drawn from the background would be in the way.
    is_ours: bool,
    memory: Option<(u64, u64)>,
    memory_looked_at: Option<Instant>,
}

impl Console {
    /// Shows boards.
    pub fn new(boards: Vec<Board>, look: Look) -> Self {
        let may_draw = look.mode == Mode::Normal && look.may_draw;
        let terminal = may_draw.then(Terminal::open).flatten();
        let canvas = terminal.map(|terminal| Canvas {
            terminal,
            screen: Screen::new(std::io::stderr(), look.color),
            is_ours: false,
            memory: None,
            memory_looked_at: None,
        });
        let last_plain = boards.iter().map(|board| vec![None; board.rows.len()]);
        let mut console = Self {
            keys: Keys::new(look.may_change),
            look,
            last_plain: last_plain.collect(),
            boards,
            canvas,
            is_over: false,
            last_tick: None,
            started: Instant::now(),
        };
        console.redraw();
        console
    }

    /// The state.
    pub fn boards(&self) -> &[Board] {
        &self.boards
    }

    /// The mutable state.
    pub fn boards_mut(&mut self) -> &mut [Board] {
        &mut self.boards
    }

    /// Replaces a board.
    pub fn replace(&mut self, at: usize, board: Board) {
        self.last_plain[at] = vec![None; board.rows.len()];
        self.boards[at] = board;
    }

    /// Shows an event of a run of a board, after its record has applied it.
    pub fn observe(
        &mut self,
        (at, run): (usize, usize),
        plan: &RunPlan,
        event: &Event,
        record: &RunRecord,
    ) {
        let board = &mut self.boards[at];
        board.observe(run, plan, event, record);
        // An interrupted run has ended for this session.
        let num_over = board.num_ended().0 + board.num_interrupted();
        let counts = (num_over, board.rows.len());
        for said in words::of(event, plan, record, counts) {
            if said.is_trouble {
                self.tell(&said.text)
            } else {
                self.line(&said.text)
            }
        }
        if matches!(event, Event::Progressed(_) | Event::EpochFinished(_)) {
            self.plain_progress((at, run), plan, record);
        }
    }

    /// An occasional line about a long run, if there is no board.
    fn plain_progress(&mut self, (at, run): (usize, usize), plan: &RunPlan, record: &RunRecord) {
        if self.is_drawing() {
            return;
        }
        let board = &self.boards[at];
        let row = &board.rows[run];
        let last = self.last_plain[at][run].unwrap_or(self.started);
        if last.elapsed() > PLAIN_INTERVAL && row.step != row.num_steps {
            self.last_plain[at][run] = Some(Instant::now());
            let mut text = words::progress(plan, row, record);
            let left = board.time_left();
            if !left.is_empty() {
                text += &format!("; all runs: {left}");
            }
            self.line(&text);
        }
    }

    /// Reads keys and redraws the board, if it is time. Returns the requests.
    pub fn tick(&mut self) -> Vec<Command> {
        let Some(canvas) = &mut self.canvas else {
            return Vec::new();
        };
        if self.last_tick.is_some_and(|last| last.elapsed() < TICK) {
            return Vec::new();
        }
        self.last_tick = Some(Instant::now());
        let pressed = if canvas.is_ours {
            canvas.terminal.keys()
        } else {
            Vec::new()
        };
        let commands = pressed.into_iter();
        let commands: Vec<Command> = commands
            .filter_map(|key| self.keys.press(key, &mut self.boards))
            .collect();
        self.redraw();
        commands
    }

    fn redraw(&mut self) {
        let Some(canvas) = &mut self.canvas else {
            return;
        };
        let (is_ours, is_anew) = canvas.terminal.is_ours();
        if canvas.is_ours && (!is_ours || is_anew) {
            // The shell has written below the board.
            let _ = canvas.screen.leave();
        }
        canvas.is_ours = is_ours;
        if !is_ours {
            return;
        }
        let looked = canvas.memory_looked_at;
        if looked.is_none_or(|looked| looked.elapsed() > MEMORY_INTERVAL) {
            canvas.memory_looked_at = Some(Instant::now());
            canvas.memory = Some((available_memory(), total_memory())).filter(|(_, all)| *all > 0);
        }
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let (columns, lines) = size.map_or((80, 24), |(width, height)| (width.0, height.0));
        self.keys.choose(&self.boards);
        let view = View {
            // Terminals differ in their behavior after the last column.
            width: usize::from(columns).saturating_sub(1),
            // The last scrolling line stays visible.
            height: usize::from(lines).saturating_sub(1).min(MAX_HEIGHT),
            chosen: self.keys.chosen,
            foot: if canvas.terminal.has_keys() && !self.is_over {
                self.keys.foot()
            } else {
                String::new()
            },
            memory: canvas.memory,
        };
        let _ = canvas.screen.draw(draw(&self.boards, &view));
    }

    fn is_drawing(&self) -> bool {
        self.canvas.as_ref().is_some_and(|canvas| canvas.is_ours)
    }

    /// Writes a line above the board, unless quiet.
    pub fn line(&mut self, text: &str) {
        if self.look.mode == Mode::Normal {
            self.tell(text);
        }
    }

    /// Writes a line above the board; on a terminal, it is broken at spaces.
    pub fn tell(&mut self, text: &str) {
        let text = match columns() {
            Some(columns) => folded(&plain_lines(text), columns).join("\n"),
            None => text.to_owned(),
        };
        match &mut self.canvas {
            Some(canvas) if canvas.is_ours => {
                let _ = canvas.screen.insert(&text);
            }
            _ => eprintln_lossy(&text),
        }
    }

    /// Clears the board for other output; it is redrawn with the next tick.
    pub fn make_way(&mut self) {
        if let Some(canvas) = &mut self.canvas
            && canvas.is_ours
        {
            let _ = canvas.screen.clear();
        }
    }

    /// Removes the board, and releases the terminal.
    pub fn close(&mut self) {
        if let Some(mut canvas) = self.canvas.take()
            && canvas.is_ours
        {
            let _ = canvas.screen.clear();
        }
    }

    /// Leaves the board as it is, and releases the terminal.
    pub fn leave(&mut self) {
        self.is_over = true;
        self.redraw();
        if let Some(mut canvas) = self.canvas.take()
            && canvas.is_ours
        {
            let _ = canvas.screen.leave();
        }
    }

    /// Whether there is a terminal for a board.
    pub fn has_board(&self) -> bool {
        self.canvas.is_some()
    }

    /// The boards as plain lines, one per run.
    pub fn plain(&self) -> String {
        let boards: Vec<String> = self.boards.iter().map(words::board).collect();
        boards.join("\n")
    }
}

/// The usable columns of the terminal that messages go to, if any: terminals differ in their behavior after the last one.
fn columns() -> Option<usize> {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map(|(width, _)| usize::from(width.0.max(20)) - 1)
}

/// Writes lines to standard error without terminal control characters; if nobody reads them, nothing is lost that is
/// not in the record.
pub fn eprintln_lossy(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{}", printable_lines(text));
}

/// Like [`eprintln_lossy`], for text that may be colored.
pub fn eprint_in_color(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{}", printable_in_color(text));
}
