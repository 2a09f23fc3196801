//! The meaning of keys. Knows boards but no terminal.

use super::board::{Board, State};
use super::terminal::Key;

/// A request from the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Stop this run, by board and index; the second time, kill it.
    Stop(usize, usize),
    /// Start no further run.
    StartNoMore,
    /// Stop everything, or stop watching.
    Quit,
}

/// The keyboard state of one console.
#[derive(Debug)]
pub struct Keys {
    /// The selected run, by board and index.
    pub chosen: Option<(usize, usize)>,
    /// The index of the selected run that has ended: nothing is selected until the user selects again, so that a key
    /// intended for that run never stops another.
    left: Option<(usize, usize)>,
    may_change: bool,
    shows_help: bool,
}

impl Keys {
    /// Nothing is selected. With `may_change` keys stop runs.
    pub fn new(may_change: bool) -> Self {
        Self {
            chosen: None,
            left: None,
            may_change,
            shows_help: false,
        }
    }

    /// Keeps the selection among the active runs: the first one initially, none once the selected one has ended.
    pub fn choose(&mut self, boards: &[Board]) {
        let under_way = under_way(boards);
        self.chosen = match self.chosen {
            _ if !self.may_change => None,
            Some(chosen) if under_way.contains(&chosen) => Some(chosen),
            Some(gone) => {
                self.left = Some(gone);
                None
            }
            None if self.left.is_some() => None,
            None => under_way.first().copied(),
        };
    }

    /// A key was pressed.
    pub fn press(&mut self, key: Key, boards: &mut [Board]) -> Option<Command> {
        self.choose(boards);
        match key {
            Key::Up | Key::Char('k') => self.go(boards, -1),
            Key::Down | Key::Char('j') => self.go(boards, 1),
            Key::Char('?' | 'h') => self.shows_help = !self.shows_help,
            Key::Char('q') => return Some(Command::Quit),
            Key::Char('s') if self.may_change => {
                let (at, run) = self.chosen?;
                boards[at].rows[run].state = State::Stopping;
                return Some(Command::Stop(at, run));
            }
            Key::Char('a') if self.may_change => {
                boards
                    .iter_mut()
                    .for_each(|board| board.starts_no_more = true);
                return Some(Command::StartNoMore);
            }
            Key::Char(_) => {}
        }
        None
    }

    fn go(&mut self, boards: &[Board], by: isize) {
        let under_way = under_way(boards);
        if let Some(left) = self.left.take() {
            let next = under_way.iter().find(|run| **run > left);
            self.chosen = next.or(under_way.last()).copied();
            return;
        }
        let at = under_way.iter().position(|run| Some(*run) == self.chosen);
        let Some(at) = at else { return };
        let last = under_way.len() - 1;
        self.chosen = Some(under_way[at.saturating_add_signed(by).min(last)]);
    }

    /// What keys do; parts are separated by two spaces.
    pub fn foot(&self) -> String {
        let foot = match (self.may_change, self.shows_help) {
            (true, false) => "up/down select  s stop it  a start no more  q quit  ? help",
            (true, true) => {
                "up, down: select a run  s: stop it with a checkpoint to resume from; twice: kill it  a: finish active runs and start no more  q: stop all with checkpoints, as Ctrl-C does  ?: less"
            }
            (false, false) => "q quit  ? help",
            (false, true) => "q: stop watching; the runs continue  ?: less",
        };
        foot.to_owned()
    }
}

fn under_way(boards: &[Board]) -> Vec<(usize, usize)> {
    let boards = boards.iter().enumerate();
    boards
        .flat_map(|(at, board)| board.under_way().map(move |run| (at, run)))
        .collect()
}
